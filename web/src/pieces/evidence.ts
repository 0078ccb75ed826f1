import { Evidence } from "../widgets/evidence/Evidence";
import { register } from "../widgets/registry";

register("evidence", Evidence, "severity|family|text");
