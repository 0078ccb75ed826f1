import { Timeline } from "../widgets/timeline/Timeline";
import { register } from "../widgets/registry";

register("timeline", Timeline, "rank|from|to|select|find|kind|measure|fold");
