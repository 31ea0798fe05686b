/**
 * The response object as JSON text. The fields that follow from the request are serialized once: a stream repeats them in
 * several events, and tools and instructions can be long.
 */
import type { GatewayError } from "../../domain/GatewayError.ts"
import type { FinishReason, Usage } from "../../domain/ReplyEvent.ts"
import { errorFields } from "../shared/errorShapes.ts"
import { responseId } from "./ids.ts"
import type { ResponseEcho, ResponseError, ResponseObject, ResponseUsage } from "./ResponseObject.ts"
import type { ResponseRequest } from "./schema.ts"
import type { CallTargets } from "./toolNames.ts"
import { functionFields, isFunctionTool, type Tool } from "./tools.ts"

/** The facts of one response that do not change. */
export interface ResponseInfo {
  /** The model's name that was asked for. */
  readonly model: string
  /** The response that the request continues. */
  readonly previousId: string | undefined
  /** 32 hex digits that all ids of the response contain. */
  readonly seed: string
  /** Unix seconds. */
  readonly createdAt: number
  /** What calls of the declared functions are to the caller. */
  readonly targets: CallTargets
  /** The fields that follow from the request, before and after `service_tier`, as JSON text without the enclosing braces. */
  readonly echo: readonly [before: string, after: string]
  /** The requested service tier, until the server says its own. */
  readonly serviceTier: string
}

export interface RenderOptions {
  /** The clock's milliseconds. */
  readonly now: () => number
  /** Receives the response in progress as JSON text, and its id, before its first frames are rendered. */
  readonly begun: ((body: string, id: string) => void) | undefined
  /**
   * Receives the final response object as JSON text, before the frames that contain it are rendered, and the ids of items that a server made.
   */
  readonly finalized: (body: string, id: string, serversItems?: ReadonlyArray<string>, isHeld?: boolean) => void
  /** The seal of a compaction that is the first item of the output; asked for once, when the reply starts. */
  readonly compaction: (() => string | undefined) | undefined
}

const echoTool = (tool: Tool): (typeof ResponseEcho.Type)["tools"][number] => {
  if (!isFunctionTool(tool)) return tool
  const { description, name, parameters, strict } = functionFields(tool)
  return {
    type: "function",
    name,
    description: description ?? null,
    parameters: parameters ?? null,
    strict: strict ?? null
  }
}

/** The service tier: the requested one, else `default`. */
const tierOf = (asked: string | null | undefined): string =>
  asked === undefined || asked === null || asked === "auto" ? "default" : asked

/** What was asked of the server. Fields that it does not get have the vendor's default, or `null`. */
const echoOf = (request: ResponseRequest): typeof ResponseEcho.Type => ({
  access_programs: null,
  background: false,
  instructions: request.instructions ?? null,
  max_output_tokens: request.max_output_tokens ?? null,
  max_tool_calls: null,
  metadata: request.metadata ?? {},
  model: request.model,
  parallel_tool_calls: request.parallel_tool_calls !== false,
  previous_response_id: request.previous_response_id ?? null,
  prompt_cache_key: request.prompt_cache_key ?? null,
  reasoning: { effort: request.reasoning?.effort ?? null, summary: request.reasoning?.summary ?? null },
  safety_identifier: request.safety_identifier ?? null,
  presence_penalty: request.presence_penalty ?? 0,
  frequency_penalty: request.frequency_penalty ?? 0,
  service_tier: tierOf(request.service_tier),
  store: request.store !== false,
  temperature: request.temperature ?? 1,
  text: {
    format: request.text?.format ?? { type: "text" },
    ...(request.text?.verbosity ? { verbosity: request.text.verbosity } : {})
  },
  tool_choice: request.tool_choice ?? "auto",
  tools: (request.tools ?? []).map(echoTool),
  top_logprobs: request.top_logprobs ?? 0,
  top_p: request.top_p ?? 1,
  truncation: "disabled"
})

const membersOf = (fields: ReadonlyArray<readonly [string, unknown]>): string =>
  JSON.stringify(Object.fromEntries(fields)).slice(1, -1)

/** The facts of the response to a request. */
export const responseInfo = (
  seed: string,
  createdAt: number,
  request: ResponseRequest,
  targets: CallTargets
): ResponseInfo => {
  const echo = Object.entries(echoOf(request))
  const tier = echo.findIndex(([name]) => name === "service_tier")
  return {
    model: request.model,
    previousId: request.previous_response_id ?? undefined,
    seed,
    createdAt,
    targets,
    echo: [membersOf(echo.slice(0, tier)), membersOf(echo.slice(tier + 1))],
    serviceTier: tierOf(request.service_tier)
  }
}

type Status = (typeof ResponseObject.Type)["status"]

/** The state of a response. */
export interface ResponseState {
  readonly status: Status
  /** Unix seconds; only for `completed`. */
  readonly completedAt: number | null
  readonly error: GatewayError | null
  readonly incomplete: "max_output_tokens" | "content_filter" | null
  /** The items of the output, each as JSON text. */
  readonly output: ReadonlyArray<string>
  /** All text of the output, escaped as between the quotes of a JSON string. */
  readonly text: string
  readonly usage: Usage | undefined
  /** The server's own service tier. */
  readonly serviceTier: string | undefined
}

/** Why a reply that has ended so is incomplete. */
export const incompleteReasons = {
  stop: null,
  stop_sequence: null,
  tool_calls: null,
  length: "max_output_tokens",
  content_filter: "content_filter"
} as const satisfies Record<FinishReason, ResponseState["incomplete"]>

/** The error of a failed response. */
export const responseError = (failure: GatewayError): typeof ResponseError.Type => {
  const error = errorFields(failure)
  if (failure.passed !== undefined) return error
  const { code, message, param, type } = error
  return { code, message, type, param }
}

/** The token counts of a response. */
export const usageFields = (usage: Usage): typeof ResponseUsage.Type => ({
  input_tokens: usage.promptTokens,
  input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: usage.cacheWriteTokens ?? 0 },
  output_tokens: usage.completionTokens,
  output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  total_tokens: usage.promptTokens + usage.completionTokens
})

/** The response object as JSON text. */
export const responseText = (info: ResponseInfo, state: ResponseState): string => {
  const error = state.error === null ? "null" : JSON.stringify(responseError(state.error))
  const incomplete = state.incomplete === null ? "null" : `{"reason":"${state.incomplete}"}`
  const usage = state.usage === undefined ? "null" : JSON.stringify(usageFields(state.usage))
  return `{"id":"${
    responseId(info.seed)
  }","object":"response","created_at":${info.createdAt},"status":"${state.status}"` +
    `,"completed_at":${state.completedAt},"error":${error},"incomplete_details":${incomplete}` +
    `,"output":[${state.output.join(",")}],"output_text":"${state.text}","usage":${usage},${
      info.echo[0]
    },"service_tier":${JSON.stringify(state.serviceTier ?? info.serviceTier)},${info.echo[1]}}`
}

/** The response object before the first event of the reply. */
export const inProgressText = (info: ResponseInfo): string =>
  responseText(info, {
    status: "in_progress",
    completedAt: null,
    error: null,
    incomplete: null,
    output: [],
    text: "",
    usage: undefined,
    serviceTier: undefined
  })
