import { History } from "../widgets/history/History";
import { register } from "../widgets/registry";

register("history", History);
