import { Icicle } from "../widgets/icicle/Icicle";
import { register } from "../widgets/registry";

register("icicle", Icicle, "rank|weight|side|order|hide|about|node|find");
