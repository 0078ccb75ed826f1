import { Forest } from "../widgets/forest/Forest";
import { register } from "../widgets/registry";

register("forest", Forest);
