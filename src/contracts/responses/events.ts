/**
 * Schemas of the events of a Responses stream, for the API documents and for tests (spec "Responses-style stream" and the
 * vendor's SDK). The renderer writes the same frames from prepared strings.
 */
import * as Schema from "effect/Schema"
import { OutputItem, OutputRefusal, OutputText, SummaryText, TextLogprobs, UrlCitation } from "./items.ts"
import { ResponseObject } from "./ResponseObject.ts"

const event = <const Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), sequence_number: Schema.Int, ...fields })

const inResponse = { response_id: Schema.String, output_index: Schema.Int }
const inItem = { ...inResponse, item_id: Schema.String }
const inText = { ...inItem, content_index: Schema.Int }
const inSummary = { ...inItem, summary_index: Schema.Int }
const inCommand = { ...inItem, command_index: Schema.Int }
const inCall = { ...inItem, call_id: Schema.String }

const withStatus = <const Status extends string>(status: Status) =>
  Schema.Struct({ ...ResponseObject.fields, status: Schema.Literal(status) })

/** One event of the stream. */
export const ResponseEvent = Schema.Union([
  event("response.created", {
    id: Schema.String,
    status: Schema.Literal("in_progress"),
    response: withStatus("in_progress")
  }),
  event("response.in_progress", { response: withStatus("in_progress") }),
  event("response.output_item.added", { ...inResponse, item: OutputItem }),
  event("response.output_item.done", { ...inResponse, item: OutputItem }),
  event("response.content_part.added", { ...inText, part: Schema.Union([OutputText, OutputRefusal]) }),
  event("response.content_part.done", { ...inText, part: Schema.Union([OutputText, OutputRefusal]) }),
  event("response.output_text.annotation.added", {
    ...inText,
    annotation_index: Schema.Int,
    annotation: UrlCitation
  }),
  event("response.refusal.delta", { ...inText, delta: Schema.String }),
  event("response.refusal.done", { ...inText, refusal: Schema.String }),
  event("response.output_text.delta", { ...inText, delta: Schema.String, logprobs: TextLogprobs }),
  event("response.output_text.done", { ...inText, text: Schema.String, logprobs: TextLogprobs }),
  event("response.reasoning_summary_part.added", { ...inSummary, part: SummaryText }),
  event("response.reasoning_summary_part.done", { ...inSummary, part: SummaryText }),
  event("response.reasoning_summary_text.delta", { ...inSummary, delta: Schema.String }),
  event("response.reasoning_summary_text.done", { ...inSummary, text: Schema.String }),
  event("response.function_call_arguments.delta", { ...inCall, delta: Schema.String }),
  event("response.function_call_arguments.done", { ...inCall, name: Schema.String, arguments: Schema.String }),
  event("response.custom_tool_call_input.delta", { ...inCall, delta: Schema.String }),
  event("response.custom_tool_call_input.done", { ...inCall, name: Schema.String, input: Schema.String }),
  event("response.shell_call_command.added", { ...inCommand, command: Schema.Literal("") }),
  event("response.shell_call_command.delta", { ...inCommand, delta: Schema.String }),
  event("response.shell_call_command.done", { ...inCommand, command: Schema.String }),
  event("response.image_generation_call.in_progress", inItem),
  event("response.image_generation_call.generating", inItem),
  event("response.image_generation_call.completed", inItem),
  event("response.completed", { response: withStatus("completed") }),
  event("response.incomplete", { response: withStatus("incomplete") }),
  event("response.failed", { response: withStatus("failed") })
]).annotate({ identifier: "ResponseEvent" })

/** One frame: an event, or the marker that ends the stream. */
export const ResponseFrame = Schema.Struct({
  event: Schema.optionalKey(Schema.String),
  data: Schema.Union([Schema.Literal("[DONE]"), Schema.fromJsonString(ResponseEvent)])
})
