import { Graphs } from "../widgets/graphs/Graphs";
import { register } from "../widgets/registry";

register("graphs", Graphs, "graph|open|node|with|open2|node2|colour");
