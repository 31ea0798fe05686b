/** The error reference: what happened, who has to act, and what to do, for each code and for each kind of upstream failure. */
import { rules } from "../../src/domain/failureRules.ts"
import { faultOf } from "../../src/domain/fault.ts"
import { type ErrorCode, errorTable } from "../../src/domain/GatewayError.ts"
import { adviceTexts, causeNames } from "../../src/web/texts/advice.ts"
import { code, table } from "./table.ts"

/** What happened, by the code of the error. */
const meanings: Readonly<Record<ErrorCode, string>> = {
  invalid_request: "A field of the request is missing, malformed or not supported. The message begins with the field.",
  model_not_found: "No model, alias, route or target has this name, or the upstream's server lacks the model.",
  context_length_exceeded: "The conversation is longer than the model's context.",
  content_filter: "The provider's content filter refused the prompt, or withdrew the reply.",
  unknown_reference: "The request refers to an item that is unknown or no longer stored.",
  previous_response_not_found: "`previous_response_id` names a response that is unknown or no longer stored.",
  invalid_stream_id: "A WebSocket message names a lane in a form that is not allowed.",
  websocket_stream_limit_reached: "A WebSocket connection has too many lanes.",
  websocket_connection_limit_reached:
    "A WebSocket connection is too old, or the conversations of all connections are too large.",
  authentication_failed: "The credential is missing, wrong, disabled or expired.",
  vendor_login_required: "The upstream needs the client's own login, and the request has none.",
  model_not_allowed: "The key may not use this model.",
  model_not_priced: "The key has a cost limit, and the model has no price.",
  role_not_allowed: "The admin credential has the role viewer, and the call needs the role admin.",
  not_found: "There is no such endpoint, or no object with this name.",
  method_not_allowed: "The endpoint has other methods, which `Allow` lists.",
  request_timeout: "The request body did not arrive in time.",
  locked: "The configuration is locked, and the call would change it.",
  conflict: "Another change came first.",
  request_too_large: "The request is larger than a size limit.",
  unsupported_media_type: "The content type of the request is not supported.",
  upgrade_required: "The endpoint needs a WebSocket upgrade.",
  tool_choice_violation: "The model did not call the tool that `tool_choice` demands.",
  rate_limit_exceeded: "The key has reached a limit, or the gateway's queue is full.",
  upstream_rate_limited: "All suitable accounts of the upstream have reached the provider's limit.",
  internal_error: "The gateway failed because of a defect.",
  embeddings_unavailable: "The gateway has no embeddings for this model.",
  config_not_saved: "The configuration file cannot be written.",
  no_account_available: "No account of the upstream can be used: it has no account, or all are out of rotation.",
  store_unavailable: "The shared store does not answer.",
  upstream_error: "The upstream failed, or cannot be reached.",
  upstream_timeout: "The upstream was silent for too long.",
  upstream_empty_output: "The upstream's reply was empty.",
  shutting_down: "The gateway is shutting down."
}

const names = Object.keys(errorTable) as ReadonlyArray<ErrorCode>

/** The advice for the first name that has one, as the console chooses it. */
const adviceOf = (...names: ReadonlyArray<string | undefined>): string => {
  const found = names.find((name) => name !== undefined && Object.hasOwn(adviceTexts, name))
  if (found === undefined) throw new Error(`src/web/texts/advice.ts has no advice for ${names.join(", ")}`)
  return adviceTexts[found]!
}

/** A table of all codes. A queue that is full has the code of a key's limit, and is the gateway's. */
export const errorCodes = (): string =>
  table(
    ["code", "status", "retry", "fault", "what happened", "what to do"],
    names.map((name) => {
      const { retry, status } = errorTable[name]
      const fault = faultOf({ error: name })
      const faults = new Set([fault, faultOf({ error: name, admitted: true })])
      return [
        code(name),
        String(status),
        retry ? "yes" : "no",
        [...faults].join(", "),
        meanings[name],
        name === "rate_limit_exceeded" ? `${adviceOf(name)} ${adviceOf("queue_full")}` : adviceOf(name, fault)
      ]
    })
  )

/** A table of the classes of upstream failures, in the order of the rules. A class with several codes names each. */
export const upstreamFailures = (): string =>
  table(
    ["class", "what happened", "code", "fault", "what to do"],
    [...new Set(rules.map((rule) => rule.class))].map((name) => {
      const fault = faultOf({ error: "", cause: name })
      return [
        code(name),
        causeNames[name] ?? "",
        [...new Set(rules.flatMap((rule) => rule.class === name ? [code(rule.code)] : []))].join(", "),
        fault ?? "",
        adviceOf(name, fault)
      ]
    })
  )
