/** Workers are bundled into text; see build.mjs. */
declare module "*.worker.ts" {
  const script: string;
  export default script;
}
declare module "*.css";
