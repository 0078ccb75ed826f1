import { Compile } from "../widgets/compile/Compile";
import { register } from "../widgets/registry";

register("compile", Compile, "see");
