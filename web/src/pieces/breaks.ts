import { Breaks } from "../widgets/breaks/Breaks";
import { register } from "../widgets/registry";

register("breaks", Breaks, "line");
