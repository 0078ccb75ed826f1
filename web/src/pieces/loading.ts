import { Loading } from "../widgets/loading/Loading";
import { register } from "../widgets/registry";

register("loading", Loading);
