import { Difference } from "../widgets/compile/Difference";
import { register } from "../widgets/registry";

register("graphdiff", Difference);
