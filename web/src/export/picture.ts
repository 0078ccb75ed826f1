/** Pictures of what is drawn, for a slide or a ticket: a canvas as PNG, a chart as PNG or as SVG that stands alone. */
import { download } from "./download";

const NAMESPACE = "http://www.w3.org/2000/svg";
const SHARPNESS = 2;

/** Properties that style sheets give to charts; written into the file, which has no style sheet. */
const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "paint-order",
  "display",
  "visibility",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "font-variant-numeric",
  "letter-spacing",
  "text-anchor",
  "dominant-baseline",
  "shape-rendering",
  "vector-effect",
] as const;

/** Save what a canvas shows as PNG, on the page's ground instead of nothing. */
export function saveCanvas(canvas: HTMLCanvasElement, name: string): void {
  const copy = onGround(canvas.width, canvas.height, (context) => context.drawImage(canvas, 0, 0));
  savePng(copy, name);
}

/** Save a chart as an SVG file that looks the same without the page. */
export function saveSvg(svg: SVGSVGElement, name: string): void {
  download(withSuffix(name, ".svg"), standalone(svg), "image/svg+xml");
}

/** Save a chart as PNG, at twice its size on the page. Rejects when the browser cannot draw it. */
export async function saveSvgAsPng(svg: SVGSVGElement, name: string): Promise<void> {
  const { width, height } = sizeOf(svg);
  const image = new Image();
  // A data address: the page's policy allows pictures from nowhere else.
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
  await image.decode();
  const [wide, high] = [Math.round(width * SHARPNESS), Math.round(height * SHARPNESS)];
  savePng(onGround(wide, high, (context) => context.drawImage(image, 0, 0, wide, high)), name);
}

/** The text of a chart with its computed styles, size and ground written into it. */
export function standalone(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const { width, height } = sizeOf(svg);
  copy.setAttribute("xmlns", NAMESPACE);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  inlineStyles(svg, copy);
  const ground = document.createElementNS(NAMESPACE, "rect");
  const box = (copy.getAttribute("viewBox") ?? "").split(/[\s,]+/);
  ["x", "y", "width", "height"].forEach((side, i) => ground.setAttribute(side, box[i] ?? "0"));
  ground.setAttribute("fill", groundColour());
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

function inlineStyles(shown: Element, copy: Element): void {
  const computed = getComputedStyle(shown);
  const { style } = copy as SVGElement;
  // Property by property: the page's policy refuses style attributes that are set as text.
  for (const name of STYLES) style.setProperty(name, computed.getPropertyValue(name));
  copy.removeAttribute("class");
  for (let i = 0; i < shown.children.length; i++) {
    const [one, other] = [shown.children[i], copy.children[i]];
    if (one !== undefined && other !== undefined) inlineStyles(one, other);
  }
}

function sizeOf(svg: SVGSVGElement): { readonly width: number; readonly height: number } {
  const box = svg.getBoundingClientRect();
  return { width: Math.max(1, Math.round(box.width)), height: Math.max(1, Math.round(box.height)) };
}

function onGround(width: number, height: number, draw: (context: CanvasRenderingContext2D) => void): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("this browser cannot draw pictures");
  context.fillStyle = groundColour();
  context.fillRect(0, 0, width, height);
  draw(context);
  return canvas;
}

function groundColour(): string {
  return getComputedStyle(document.body).backgroundColor || "#ffffff";
}

function savePng(canvas: HTMLCanvasElement, name: string): void {
  canvas.toBlob((picture) => {
    if (picture !== null) download(withSuffix(name, ".png"), picture, "image/png");
  }, "image/png");
}

function withSuffix(name: string, suffix: string): string {
  return name.toLowerCase().endsWith(suffix) ? name : name + suffix;
}
