import { Memory } from "../widgets/memory/Memory";
import { register } from "../widgets/registry";

register("memory", Memory, "from|to|at|held|when|places.(find|sort|where)");
