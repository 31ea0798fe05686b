/**
 * One question in each of the styles, and what a caller reads of the answer: raw frames, no SDK.
 */
import { businessKey } from "../../support/gateway.ts"
import { parseFrames } from "../../support/sse.ts"

/** What a caller was answered. */
export interface Said {
  readonly status: number
  readonly text: string
  /** The error, of the reply itself or within its stream. */
  readonly error: { readonly message?: string; readonly code?: string | number; readonly status?: string } | undefined
  /** The stream ended as the style says that one does. */
  readonly ended: boolean
  readonly retryAfter: string | null
  /** The header that says whether a retry may succeed. */
  readonly shouldRetry: string | null
}

interface Style {
  readonly path: (model: string, stream: boolean) => string
  readonly body: (model: string, stream: boolean) => object
  /** The text in one frame, or in the whole reply. */
  readonly text: (value: Json) => string
  /** The error in one frame, or in the whole reply. */
  readonly error: (value: Json) => unknown
  readonly done: boolean
}

/** Looks into JSON without knowing its shape. */
class Json {
  readonly value: unknown
  constructor(value: unknown) {
    this.value = value
  }
  at(...path: ReadonlyArray<string | number>): unknown {
    return path.reduce<unknown>(
      (value, key) => typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined,
      this.value
    )
  }
  text(...path: ReadonlyArray<string | number>): string {
    const value = this.at(...path)
    return typeof value === "string" ? value : ""
  }
}

const question = [{ role: "user", content: "Hi" }]

export const styles = {
  chat: {
    path: () => "/v1/chat/completions",
    body: (model, stream) => ({ model, stream, messages: question }),
    text: (value) => value.text("choices", 0, "delta", "content") + value.text("choices", 0, "message", "content"),
    error: (value) => value.at("error"),
    done: true
  },
  responses: {
    path: () => "/v1/responses",
    body: (model, stream) => ({ model, stream, input: "Hi" }),
    text: (value) =>
      value.at("type") === "response.output_text.delta" ? value.text("delta") : value.text("output_text"),
    error: (value) => value.at("response", "error") ?? value.at("error"),
    done: true
  },
  messages: {
    path: () => "/v1/messages",
    body: (model, stream) => ({ model, stream, messages: question }),
    text: (value) => value.text("delta", "text") + value.text("content", 0, "text"),
    error: (value) => value.at("error"),
    done: false
  },
  generate: {
    path: (model, stream) =>
      `/v1beta/models/${encodeURIComponent(model)}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: () => ({ contents: [{ role: "user", parts: [{ text: "Hi" }] }] }),
    text: (value) => value.text("candidates", 0, "content", "parts", 0, "text"),
    error: (value) => value.at("error"),
    done: false
  }
} as const satisfies Record<string, Style>

export type StyleName = keyof typeof styles
export const styleNames = Object.keys(styles) as ReadonlyArray<StyleName>

const isError = (value: unknown): value is NonNullable<Said["error"]> => typeof value === "object" && value !== null

/** Asks. `begun` is called when the response has begun: of a stream, with what is shown first. */
export const ask = async (
  url: string,
  name: StyleName,
  stream: boolean,
  model = "upstream-chat",
  begun: () => void = () => undefined
): Promise<Said> => {
  const style: Style = styles[name]
  const response = await fetch(url + style.path(model, stream), {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify(style.body(model, stream))
  })
  begun()
  const body = await response.text()
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true
  const frames = isStream ? parseFrames(body).map((frame) => frame.data) : [body]
  const values = frames.filter((data) => data !== "[DONE]").map((data) => new Json(JSON.parse(data)))
  return {
    status: response.status,
    text: values.map(style.text).join(""),
    error: values.map(style.error).find(isError),
    ended: !isStream || (frames.at(-1) === "[DONE]") === style.done,
    retryAfter: response.headers.get("retry-after"),
    shouldRetry: response.headers.get("x-should-retry")
  }
}
