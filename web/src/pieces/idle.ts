import { Idle } from "../widgets/idle/Idle";
import { register } from "../widgets/registry";

register("idle", Idle, "rank|cause|(streams|gaps|causes|waits).(find|sort|where)");
