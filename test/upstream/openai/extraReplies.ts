/** Raw requests, and replies of which single fields are looked at. */
import { businessKey } from "../../support/gateway.ts"
import { parseFrames } from "../../support/sse.ts"

/** The value at a path; `undefined` for a path that does not exist. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (value, key) => typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined,
    value
  )

/** Sends JSON. Returns the JSON of the reply, or the text of a stream. */
export const post = async (url: string, path: string, body: object): Promise<unknown> => {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  const text = await response.text()
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true
  return isStream ? text : JSON.parse(text)
}

/** The events of a stream. */
export const values = (stream: unknown): ReadonlyArray<unknown> =>
  parseFrames(String(stream)).map(({ data }) => data).filter((data) => data !== "[DONE]").map((data) =>
    JSON.parse(data)
  )

/** The deltas of a chat stream as one message: strings are joined, other values replace each other. */
export const merged = (chunks: ReadonlyArray<unknown>): { readonly [field: string]: unknown } => {
  const message: { [field: string]: unknown } = {}
  for (const value of chunks) {
    for (const [name, field] of Object.entries(at(value, "choices", 0, "delta") ?? {})) {
      const before = message[name]
      message[name] = typeof before === "string" && typeof field === "string" ? before + field : field
    }
  }
  return message
}
