/**
 * Decodes a Responses request to the canonical conversation and to the items that are stored with the response.
 */
import type * as Result from "effect/Result"
import { includedLogprobs } from "../../contracts/responses/family.ts"
import { loadedTools } from "../../contracts/responses/loadedTools.ts"
import type { ResponseRequest } from "../../contracts/responses/schema.ts"
import type { CallTargets } from "../../contracts/responses/toolNames.ts"
import { decodeTools, readsCalls, toolNames } from "../../contracts/responses/tools.ts"
import { decodeItems } from "../../contracts/responses/turns.ts"
import { commonSampling, stopSequences } from "../../contracts/shared/chatFamily.ts"
import { jsonSchemaOutput } from "../../contracts/shared/conversation.ts"
import { Faults } from "../../contracts/shared/Faults.ts"
import { effortSaid, type ThinkingFields, thinkingFields } from "../../contracts/shared/thinking.ts"
import {
  type Conversation,
  plainConversation,
  type StructuredOutput,
  Text,
  type Turn
} from "../../domain/Conversation.ts"
import { type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import type { Json } from "../../domain/json.ts"
import { type Cooperative, mapCooperatively, Slice } from "../../domain/stream/cooperative.ts"
import { type AskedCompaction, askedCompaction } from "./compaction/asked.ts"
import { openedItems } from "./compaction/compactedItems.ts"
import { ownRequest } from "./ownRequest.ts"
import { type DecodeOptions, requestItems } from "./requestItems.ts"

/** A decoded request. */
export interface DecodedRequest {
  readonly conversation: Conversation
  /** All items of the conversation, items of earlier responses included; without `instructions`. */
  readonly items: ReadonlyArray<Json>
  /** Characters of the items from stored responses; they count as part of the prompt beside the body. */
  readonly taken: number
  /** What calls of the declared functions are to the caller. */
  readonly targets: CallTargets
  /** What the gateway is asked to compact. */
  readonly asked: AskedCompaction
  /** Paths of the fields that have no effect, unless the conversation says where they have one. */
  readonly ignored: ReadonlyArray<string>
}

const withFields = (said: ThinkingFields, { serverFields }: Pick<Conversation, "serverFields">): ThinkingFields =>
  serverFields === undefined ? said : { ...said, serverFields: { ...said.serverFields, ...serverFields } }

const structuredOutput = ({ text }: ResponseRequest): StructuredOutput | undefined => {
  const format = text?.format
  if (format?.type === "json_schema") return jsonSchemaOutput(format)
  return format?.type === "json_object" ? { _tag: "JsonObject" } : undefined
}

/** The fields of the server for what the request says of log probabilities. */
const logprobFields = ({ include, top_logprobs: most }: ResponseRequest): Pick<Conversation, "serverFields"> =>
  (most ?? 0) > 0 || include?.includes(includedLogprobs) === true
    ? { serverFields: { logprobs: true } }
    : { serverFields: undefined }

const unknown = (param: "conversation" | "prompt"): GatewayError =>
  gatewayError("unknown_reference", `${param}: the gateway stores no ${param}s`, { param })

/** Decodes a request; `instructions` become its first turn. Fails with the first fault, which names its field. */
export function* decodeResponse(
  request: ResponseRequest,
  options: DecodeOptions
): Cooperative<Result.Result<DecodedRequest, GatewayError>> {
  const slice = new Slice()
  const faults = new Faults(options.bodyVendorFields, options.sent !== undefined)
  if (request.conversation) faults.add(unknown("conversation"))
  if (request.prompt) faults.addElsewhere(unknown("prompt"))
  if (request.background === true) {
    faults.at("background", "the gateway makes no responses in the background; leave it out or set it to false")
  }
  const { compaction, readSummary } = options
  const { items, taken } = yield* requestItems(request, options, faults, slice)
  const asked = yield* askedCompaction(request, items, faults, slice)
  const all = compaction === undefined ? items : [...items, { item: compaction, field: "input", sent: undefined }]
  const unread: Array<string> = []
  const opened = yield* openedItems(all, readSummary, { noteIgnored: (path) => unread.push(path) }, slice)
  const lists = [{ tools: request.tools ?? [], field: "tools" }, ...(yield* loadedTools(items, faults, slice))]
  const names = toolNames(lists.flatMap(({ tools }) => tools))
  const tools = decodeTools(request, lists, names, options.limits, faults)
  const system: ReadonlyArray<Turn> = request.instructions
    ? [{ role: "system", parts: [Text(request.instructions)] }]
    : []
  const { places, turns } = yield* decodeItems(opened, names, faults, slice)
  return faults.result<DecodedRequest>({
    conversation: {
      ...plainConversation,
      turns: system.concat(turns),
      places: system.map(() => "instructions").concat(places),
      ...tools,
      parallelToolCalls: request.parallel_tool_calls !== false,
      stop: stopSequences(request.stop),
      sampling: {
        ...commonSampling(request),
        maxTokens: request.max_output_tokens ?? undefined
      },
      output: structuredOutput(request),
      ...withFields(
        thinkingFields(request, [effortSaid(request.reasoning?.effort, "reasoning.effort")], ["reasoning"]),
        logprobFields(request)
      ),
      ...(options.sent === undefined ? {} : {
        vendorFields: ownRequest(options.sent, opened, {
          betas: options.betas,
          stored: options.stored,
          isRewritten: opened.length !== items.length || opened.some((placed, i) => placed !== items[i]),
          readsCalls: asked !== "now" && !request.prompt && readsCalls(lists),
          serverCompacts: options.serverCompacts
        }),
        untranslated: { paths: faults.ignored, refused: faults.elsewhere }
      })
    },
    items: yield* mapCooperatively(
      slice,
      items,
      ({ item, sent }) => options.sent === undefined || sent === undefined ? item as Json : sent
    ),
    taken,
    targets: names.targets,
    asked,
    ignored: options.sent === undefined ? [...unread, ...faults.ignored] : unread
  })
}
