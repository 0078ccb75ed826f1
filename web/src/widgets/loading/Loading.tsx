/** How the data arrives: the pipeline, one step to scale, what sets the pace, an epoch, and what would help. */
import type { JSX } from "preact";
import { formatCount, formatSeconds, significant } from "../../data/quantity";
import { t } from "../../i18n/language";
import { Figure } from "../Figure";
import { Loaded } from "../Loaded";
import { Bars, type Whole } from "../memory/Bars";
import { Missing } from "../memory/Memory";
import type { WidgetProps } from "../widget";
import { type Epoch, type Lane, lasting, type LoadingView } from "./model";
import { ofStep, Pipeline } from "./Pipeline";

const PIPELINE_HOW =
  "Along the arrows a batch is made, kept and used. The bar in a station is its time for the batches of one step. Stations of the training process follow each other and add up to the step; workers do theirs beside it. A low share on a CPU means waiting for storage.";
const PIPELINE_CHANGE =
  "A station of a worker holds the step back only while the workers together take longer than the step; more workers divide their time, more CPUs allow it. These steps were run to watch the loader, without the profiler: their times differ from those of the measured steps as far as the runs did.";
const SCALE_HOW =
  "The same times on one scale. A worker may take longer than the step when several share the work: what counts is its time over their number.";
const PACE_HOW = "These run beside each other, and the slowest sets the pace of the step.";
const PACE_CHANGE = "Where the prediction misses the measured step, something else than these parts takes time, such as other programs on the machine.";
const PROSPECT_HOW = "The step as it is, after each advice on its own, and with data that costs nothing. Gains of several do not add up.";
const PROSPECT_CHANGE = "These are predictions from the parts of the step: measure the change before you keep it.";
const EPOCH_HOW = "One pass over the data: until the first batch is there, getting the batches after that, and everything else.";

export function Loading({ blocks, place }: WidgetProps): JSX.Element {
  return <Loaded<LoadingView> blocks={blocks} name={place["block"] ?? ""}>{(view) => <Drawn view={view} />}</Loaded>;
}

function Drawn({ view }: { readonly view: LoadingView }): JSX.Element {
  return (
    <div class="memory loading">
      <Figure title="The way of the data" how={PIPELINE_HOW} change={PIPELINE_CHANGE}>
        <p class={`caveat${view.good ? " calm" : ""}`}>
          <strong>{t(view.sentence)}</strong>
          <span>{view.bottleneck} ({view.settings}; {view.steps})</span>
        </p>
        <Pipeline view={view} />
      </Figure>
      {view.lanes.length > 0 && (
        <Figure title="One step to scale" how={SCALE_HOW}>
          <Bars wholes={view.lanes.map(laneBar)} format={formatSeconds} />
        </Figure>
      )}
      {view.paces.length > 0 && (
        <Figure title="What sets the pace" how={PACE_HOW} change={PACE_CHANGE}>
          <Bars wholes={view.paces.map((pace) => ({
            label: pace.label, note: pace.note, total: pace.step_s,
            pieces: [{ name: pace.label, slot: { part: 2, measured: 5, predicted: 9 }[pace.kind], value: pace.step_s }],
            ...(pace.slowest ? { mark: `▲ ${t("the slowest")}` } : {}),
          }))} format={formatSeconds} />
        </Figure>
      )}
      {view.prospects.length > 1 && <Prospects view={view} />}
      {view.epoch !== null && (
        <Figure title="An epoch" how={EPOCH_HOW}>
          <Bars wholes={[epochBar(view.epoch)]} format={formatSeconds} />
        </Figure>
      )}
      <Missing sentences={view.missing} />
    </div>
  );
}

function Prospects({ view }: { readonly view: LoadingView }): JSX.Element {
  const wholes = view.prospects.map(({ label, step_s, ratio, said, kind }): Whole => ({
    label,
    note: kind === "now" ? said : [t("{ratio}× the step", { ratio: significant(ratio) }), t(said)].filter((part) => part !== "").join("; "),
    total: step_s,
    pieces: [{ name: label, slot: { now: 5, advice: 4, bound: 9 }[kind], value: step_s }],
    ...(kind === "bound" ? { mark: `◇ ${t("limit")}` } : {}),
  }));
  return (
    <Figure title="What would help" how={PROSPECT_HOW} change={PROSPECT_CHANGE}>
      <Bars wholes={wholes} format={formatSeconds} />
    </Figure>
  );
}

function laneBar(lane: Lane): Whole {
  const held = lane.stations.find(({ mark }) => mark !== "");
  return {
    label: lane.count > 1 ? t("one of {workers}", { workers: t(lane.title) }) : t(lane.title),
    note: "",
    total: lane.total_s,
    pieces: lasting(lane).map(({ name, slot, per_step_s }) => ({ name, slot, value: per_step_s })),
    ...(held === undefined ? {} : { mark: `▲ ${t(held.name)}: ${ofStep(held.share)}` }),
  };
}

function epochBar({ batches, start_s, data_s, work_s, note }: Epoch): Whole {
  const total = start_s + data_s + work_s;
  return {
    label: t("{batches} batches", { batches: formatCount(batches) }),
    note,
    total,
    pieces: [
      { name: "until the first batch", slot: 0, value: start_s },
      { name: "getting batches", slot: 6, value: data_s },
      { name: "everything else", slot: 4, value: work_s },
    ].filter(({ value }) => value > 0),
  };
}
