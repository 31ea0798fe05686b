/**
 * From a Responses request to the canonical conversation and to the items that are stored of it.
 */
import type * as Result from "effect/Result"
import type { Conversation, Sampling, StructuredOutput, Turn } from "../../domain/Conversation.ts"
import { Text } from "../../domain/Conversation.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { mapSliced, Slice, type Sliced } from "../../domain/stream/slices.ts"
import { Faults } from "../../http/Faults.ts"
import type { ResponseRequest } from "./Api.ts"
import type { Item } from "./items.ts"
import type { DecodeOptions } from "./requestItems.ts"
import { requestItems } from "./requestItems.ts"
import { decodeTools } from "./tools.ts"
import { turnsOf } from "./turns.ts"

/** What a request asks for. */
export interface DecodedRequest {
  readonly conversation: Conversation
  /** Every item of the conversation, those of earlier responses included, without `instructions`. */
  readonly items: ReadonlyArray<Item>
  /** Characters of the items that stored responses brought: no part of the body, and of the prompt all the same. */
  readonly taken: number
}

const sampling = (request: ResponseRequest): Sampling => ({
  temperature: request.temperature ?? undefined,
  topP: request.top_p ?? undefined,
  topK: request.top_k ?? undefined,
  maxTokens: request.max_output_tokens ?? undefined,
  seed: request.seed ?? undefined,
  presencePenalty: request.presence_penalty ?? undefined,
  frequencyPenalty: request.frequency_penalty ?? undefined,
  reasoningEffort: request.reasoning?.effort ?? undefined
})

const structuredOutput = (request: ResponseRequest): StructuredOutput | undefined => {
  const format = request.text?.format
  if (format === undefined || format === null) return undefined
  if (format.type !== "json_schema") return format.type === "text" ? undefined : { _tag: "JsonObject" }
  return {
    _tag: "JsonSchema",
    name: format.name,
    description: format.description ?? undefined,
    schema: format.schema,
    strict: format.strict ?? undefined
  }
}

const stopSequences = (stop: ResponseRequest["stop"]): ReadonlyArray<string> =>
  stop === undefined || stop === null ? [] : typeof stop === "string" ? [stop] : stop

/** The conversation that a request asks to continue, `instructions` first. */
export function* decodeResponse(
  request: ResponseRequest,
  options: DecodeOptions
): Sliced<Result.Result<DecodedRequest, GatewayError>> {
  const slice = new Slice()
  const faults = new Faults()
  for (const param of ["conversation", "prompt"] as const) {
    if (request[param]) {
      faults.add(gatewayError("unknown_reference", `${param}: the gateway keeps none`, { param }))
    }
  }
  const { items, taken } = yield* requestItems(request, options, faults, slice)
  const system: ReadonlyArray<Turn> = request.instructions
    ? [{ role: "system", parts: [Text(request.instructions)] }]
    : []
  return faults.result<DecodedRequest>({
    conversation: {
      turns: system.concat(yield* turnsOf(items, faults, slice)),
      ...decodeTools(request, faults),
      parallelToolCalls: request.parallel_tool_calls !== false,
      stop: stopSequences(request.stop),
      sampling: sampling(request),
      output: structuredOutput(request)
    },
    items: yield* mapSliced(slice, items, ({ item }) => item),
    taken
  })
}
