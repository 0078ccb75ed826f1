import { Samples } from "../widgets/samples/Samples";
import { register } from "../widgets/registry";

register("samples", Samples);
