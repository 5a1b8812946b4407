// What this server can do, from its OpenAPI document: limits, glossaries, documents. Owns nothing
// but the reading of it; a server that does not say so cannot.

const NOTHING = { maxCharacters: null, hasGlossary: false, hasAttention: false, hasDocuments: false };

/** The features of a server that describes itself like this. */
export function featuresOf(document) {
  const paths = document?.paths ?? {};
  const properties = bodyOf(paths["/v1/translate"]?.post, document)?.properties;
  if (!properties) return NOTHING;
  const texts = [properties.texts, ...(properties.texts?.anyOf ?? [])];
  const limit = texts.find((one) => one?.type === "string" && one.maxLength)?.maxLength ?? null;
  return {
    maxCharacters: limit,
    hasGlossary: "glossary" in properties,
    hasAttention: "attention" in properties,
    hasDocuments: Boolean(paths["/v1/documents"]?.post),
  };
}

function bodyOf(operation, document) {
  const schema = operation?.requestBody?.content?.["application/json"]?.schema;
  const name = schema?.$ref?.split("/").pop();
  return name ? document.components?.schemas?.[name] : schema;
}
