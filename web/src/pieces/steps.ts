import { Steps } from "../widgets/compile/Steps";
import { register } from "../widgets/registry";

register("steps", Steps, "step");
