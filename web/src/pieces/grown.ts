import { Grown } from "../widgets/memory/Grown";
import { register } from "../widgets/registry";

register("grown", Grown);
