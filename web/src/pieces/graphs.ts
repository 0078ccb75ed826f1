import { Graphs } from "../widgets/graphs/Graphs";
import { register } from "../widgets/registry";

register("graphs", Graphs);
