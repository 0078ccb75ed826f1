import { Roofline } from "../widgets/roofline/Roofline";
import { register } from "../widgets/registry";

register("roofline", Roofline);
