import { Operators } from "../widgets/operators/Operators";
import { register } from "../widgets/registry";

register("operators", Operators, "rank|tab|find|sort|where");
