import { toSvg } from "../../playground/picture/index.ts";
import { plays } from "./pictures.ts";
import { perform } from "./stage.ts";

/** Draws the pictures of the documentation. @returns by file in docs/images: its SVG */
export async function drawPictures(): Promise<ReadonlyMap<string, string>> {
  const pictures = new Map<string, string>();
  // One after the other: they share the source of digests.
  for (const [file, play] of Object.entries(plays)) pictures.set(file, toSvg(await perform(play)));
  return pictures;
}
