/** The requests of the `openai` contract: chat completions and embeddings. */
import { carried, type Family, hint, local, modelled, object, oneOf, refusedByDecoder, told } from "./Family.ts"

const isTextOnly = (value: unknown): boolean => Array.isArray(value) && value.every((kind) => kind === "text")

export const chatFamily: Family = {
  name: "openai chat",
  vendor: "openai",
  open: true,
  fields: new Map(Object.entries({
    model: modelled,
    messages: modelled,
    stream: modelled,
    stream_options: object({
      include_usage: modelled,
      include_obfuscation: local(hint("The gateway pads no events."))
    }),
    tools: modelled,
    tool_choice: modelled,
    parallel_tool_calls: modelled,
    n: refusedByDecoder("A reply has one choice."),
    stop: modelled,
    response_format: modelled,
    temperature: modelled,
    top_p: modelled,
    top_k: modelled,
    max_tokens: modelled,
    max_completion_tokens: modelled,
    seed: modelled,
    presence_penalty: modelled,
    frequency_penalty: modelled,
    logit_bias: modelled,
    reasoning_effort: modelled,
    logprobs: carried({ isSilent: oneOf(false) }),
    top_logprobs: carried(),
    service_tier: carried(),
    verbosity: carried(),
    prediction: carried(),
    modalities: carried({ required: true, isSilent: isTextOnly }),
    audio: carried(),
    web_search_options: carried(),
    moderation: carried(),
    user: carried(),
    metadata: carried(),
    store: carried(),
    safety_identifier: carried(),
    prompt_cache_key: carried(),
    prompt_cache_options: carried(),
    prompt_cache_retention: carried(),
    functions: local(told("The format before tools: declare tools instead.")),
    function_call: local(told("The format before tools: use tool_choice instead.", "auto", "none"))
  }))
}

export const embeddingsFamily: Family = {
  name: "openai embeddings",
  open: true,
  fields: new Map(Object.entries({
    model: modelled,
    input: modelled,
    dimensions: modelled,
    encoding_format: modelled,
    user: carried()
  }))
}
