/** A worker's script is read from the page's data; see build.mjs. */
declare module "*.worker.ts" {
  const script: () => Promise<string>;
  export default script;
}
declare module "*.css";
