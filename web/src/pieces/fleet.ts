import { Fleet } from "../dashboard/Fleet";
import { register } from "../widgets/registry";

register("fleet", Fleet);
