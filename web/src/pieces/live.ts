import { Live } from "../dashboard/Live";
import { register } from "../widgets/registry";

register("live", Live);
