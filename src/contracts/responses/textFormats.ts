/**
 * The items and events of text in the Responses style: of a message, of a refusal, and of reasoning.
 */
import type { Citation } from "../shared/serverExtras.ts"
import type { UrlCitation } from "./items.ts"

/** How a text item is rendered. All texts are escaped already, as between the quotes of a JSON string. */
interface TextFormat {
  readonly part: (text: string, annotations: string, logprobs: string) => string
  readonly item: (id: string, status: string, parts: string) => string
  /** The field with the part's index; every item has one part. */
  readonly index: string
  readonly partEvent: string
  readonly textEvent: string
  /** The field with the text in the text's last event. */
  readonly field: string
  /** Fields that text events have beside their text. */
  readonly extra: (logprobs: string) => string
}

export const textFormats = {
  message: {
    part: (text, annotations, logprobs) =>
      `{"type":"output_text","text":"${text}","annotations":[${annotations}],"logprobs":[${logprobs}]}`,
    item: (id, status, parts) =>
      `{"id":"${id}","type":"message","status":"${status}","role":"assistant","content":[${parts}]}`,
    index: "content_index",
    partEvent: "response.content_part",
    textEvent: "response.output_text",
    field: "text",
    extra: (logprobs) => `,"logprobs":[${logprobs}]`
  },
  refusal: {
    part: (text) => `{"type":"refusal","refusal":"${text}"}`,
    item: (id, status, parts) =>
      `{"id":"${id}","type":"message","status":"${status}","role":"assistant","content":[${parts}]}`,
    index: "content_index",
    partEvent: "response.content_part",
    textEvent: "response.refusal",
    field: "refusal",
    extra: () => ""
  },
  reasoning: {
    part: (text) => `{"type":"summary_text","text":"${text}"}`,
    item: (id, status, parts) => `{"id":"${id}","type":"reasoning","status":"${status}","summary":[${parts}]}`,
    index: "summary_index",
    partEvent: "response.reasoning_summary_part",
    textEvent: "response.reasoning_summary_text",
    field: "text",
    extra: () => ""
  }
} satisfies { readonly [kind: string]: TextFormat }

export type TextKind = keyof typeof textFormats

/** A citation as JSON. */
export const annotationText = ({ from, title, to, url }: Citation): string =>
  JSON.stringify(
    { type: "url_citation", start_index: from, end_index: to, title, url } satisfies typeof UrlCitation.Type
  )
