import { Memory } from "../widgets/memory/Memory";
import { register } from "../widgets/registry";

register("memory", Memory);
