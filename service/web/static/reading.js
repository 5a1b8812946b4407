// A file that is read into the field, where the server takes no documents. Owns which files can be.

import { ApiError } from "./api.js";

const MAX_BYTES = 2 ** 20;

/** The text of a file, of `maxCharacters` at most unless that is null; an ApiError if it has none, or more. */
export async function readText(file, maxCharacters) {
  if (file.size > MAX_BYTES) throw new ApiError("too_long", { value: file.size, limit: MAX_BYTES });
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new ApiError("file_kind");
  }
  if (text.includes("\0")) throw new ApiError("file_kind");
  const length = [...text].length;
  if (maxCharacters !== null && length > maxCharacters) throw new ApiError("too_long", { value: length, limit: maxCharacters });
  return text;
}
