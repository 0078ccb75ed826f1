/** All widgets by the name that the static page calls them. */
import { Live } from "../dashboard/Live";
import { Breaks } from "./breaks/Breaks";
import { Compile } from "./compile/Compile";
import { Difference } from "./compile/Difference";
import { Evidence } from "./evidence/Evidence";
import { Graphs } from "./graphs/Graphs";
import { Icicle } from "./icicle/Icicle";
import { Idle } from "./idle/Idle";
import { Loading } from "./loading/Loading";
import { Forest } from "./forest/Forest";
import { History } from "./history/History";
import { Grown } from "./memory/Grown";
import { Memory } from "./memory/Memory";
import { Operators } from "./operators/Operators";
import { Roofline } from "./roofline/Roofline";
import { Samples } from "./samples/Samples";
import { Timeline } from "./timeline/Timeline";
import type { Widget } from "./widget";

export const WIDGETS: Readonly<Record<string, Widget>> = {
  breaks: Breaks,
  compile: Compile,
  graphdiff: Difference,
  graphs: Graphs,
  evidence: Evidence,
  forest: Forest,
  grown: Grown,
  history: History,
  idle: Idle,
  live: Live,
  loading: Loading,
  memory: Memory,
  operators: Operators,
  icicle: Icicle,
  roofline: Roofline,
  samples: Samples,
  timeline: Timeline,
};
