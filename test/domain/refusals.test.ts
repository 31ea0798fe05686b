/** The words by which servers refuse parts of a request, from their documents and from public reports. */
import { assert, describe, it } from "@effect/vitest"
import { errorFacts } from "../../src/contracts/shared/errorFacts.ts"
import type { RefusedPart } from "../../src/domain/refusedParts.ts"

const field = (path: string): RefusedPart => ({ _tag: "UnsupportedField", path })
const value = (path: string, ...allowed: ReadonlyArray<string>): RefusedPart => ({
  _tag: "UnsupportedValue",
  path,
  allowed
})
const most = (most: number): RefusedPart => ({ _tag: "TooLarge", most })
const over = (window: number, prompt: number): RefusedPart => ({ _tag: "OverWindow", window, prompt })
const long = (path: string, most: number): RefusedPart => ({ _tag: "TooLong", path, most })
const forced: RefusedPart = { _tag: "ForcedCall" }

const thinkingConfig = "generationConfig.thinkingConfig"
const budget = `${thinkingConfig}.thinkingBudget`
const refused = (path: string, value: string): RefusedPart => ({ _tag: "RefusedValue", path, value })
const outOfRange = (path: string, least: number, most: number): RefusedPart => ({
  _tag: "OutOfRange",
  path,
  least,
  most
})
const thoughts = field("messages.reasoning_content")

/** Each server, its message, and what it says; with the field that the error names. */
const rows: ReadonlyArray<
  readonly [server: string, message: string, parts: ReadonlyArray<RefusedPart>, param?: string]
> = [
  [
    "OpenAI",
    "Unsupported parameter: 'temperature' is not supported with this model.",
    [field("temperature")],
    "temperature"
  ],
  [
    "OpenAI, of a limit",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    [field("max_tokens")],
    "max_tokens"
  ],
  ["OpenAI, of a nested field", "Unsupported parameter: 'reasoning.effort' is not supported with this model.", [
    field("reasoning.effort")
  ]],
  ["OpenAI, of an unknown field", "Unknown parameter: 'verbosity'.", [field("verbosity")]],
  ["Azure", "Unrecognized request argument supplied: reasoning_effort", [field("reasoning_effort")]],
  [
    "Azure, in a long sentence",
    "Unrecognized request argument supplied: parallel_tool_calls. Please contact us through an Azure support request at: https://x.test/a",
    [field("parallel_tool_calls")]
  ],
  ["Azure, of several", "Unrecognized request arguments supplied: store, verbosity", [
    field("store"),
    field("verbosity")
  ]],
  [
    "Azure, by pointers",
    "Validation error at #/max_completion_tokens: Extra inputs are not permitted\nValidation error at #/store: Extra inputs are not permitted",
    [field("max_completion_tokens"), field("store")]
  ],
  [
    "vLLM",
    "[{'type': 'extra_forbidden', 'loc': ('body', 'verbosity'), 'msg': 'Extra inputs are not permitted', 'input': 'low'}]",
    [field("verbosity")]
  ],
  ["Anthropic", "context_management: Extra inputs are not permitted", [field("context_management")]],
  ["Fireworks", "Extra inputs are not permitted, field: 'prompt_cache_key', value: 'a'", [field("prompt_cache_key")]],
  ["Groq", "property 'store' is unsupported, did you mean 'stop'?", [field("store")]],
  ["xAI, of a model", "Model grok-4.5 does not support parameter presencePenalty.", [field("presencePenalty")]],
  ["NVIDIA", "Validation: Unsupported parameter(s): reasoning_budget, `top_k`", [
    field("reasoning_budget"),
    field("top_k")
  ]],
  [
    "Cohere",
    "unknown field: parameter 'strict' is not a valid field. For proper usage, please refer to https://x.test/a",
    [field("tools.strict")]
  ],
  ["Cohere, of another field", "unknown field: parameter 'top_k' is not a valid field.", [field("top_k")]],
  ["Copilot", "reasoning_effort \"medium\" was provided, but model gpt-4o does not support reasoning effort", [
    field("reasoning_effort")
  ]],
  [
    "LM Studio, of efforts",
    "Model 'qwen3-vl-8b' does not expose reasoning configuration.",
    [field("reasoning_effort")],
    "reasoning"
  ],
  [
    "Cerebras, of earlier thinking",
    "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported",
    [thoughts]
  ],
  ["Fireworks, of earlier thinking", "Extra inputs are not permitted, field: 'messages[8].reasoning', value: 'Hm'", [
    field("messages.reasoning")
  ]],
  [
    "vLLM, of earlier thinking",
    "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 2, 'assistant', 'reasoning_content'), 'msg': 'Extra inputs are not permitted'}]",
    [thoughts]
  ],
  ["serde, of earlier thinking", "messages[1]: unknown field `reasoning_content`, expected one of `role`", [thoughts]],
  ["Groq, of a model", "`reasoning_effort` is not supported with this model", [field("reasoning_effort")]],
  ["xAI", "Argument not supported on this model: reasoning_effort", [field("reasoning_effort")]],
  ["llama.cpp", "Unsupported param: logit_bias", [field("logit_bias")]],
  ["LiteLLM", "together_ai does not support parameters: ['reasoning_effort', 'store'], for model=m", [
    field("reasoning_effort"),
    field("store")
  ]],
  ["serde", "Failed to deserialize the JSON body into the target type: unknown field `verbosity`, expected one of", [
    field("verbosity")
  ]],
  ["Go", "json: unknown field \"prompt_cache_key\"", [field("prompt_cache_key")]],
  ["any server that names the field", "This field is not supported.", [field("top_k")], "top_k"],
  [
    "Gemini",
    "Invalid JSON payload received. Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.",
    [field("generation_config.thinking_config.thinkingLevel")]
  ],
  ["Gemini, of the top", "Invalid JSON payload received. Unknown name \"labels\": Cannot find field.", [
    field("labels")
  ]],
  ["Gemini, of a model", "Thinking level is not supported for this model.", [
    field(`${thinkingConfig}.thinking_level`)
  ]],
  ["Gemini, of no budget", "Budget 0 is invalid. This model only works in thinking mode.", [
    outOfRange(budget, 1, 2 ** 31 - 1)
  ]],
  ["Gemini, of a large budget", "The thinking budget (52428) is invalid.", [refused(budget, "52428")]],
  [
    "Vertex, of a budget",
    "Unable to submit request because thinking_budget is out of range; supported values are integers from 128 to 32768. Learn more: https://docs",
    [outOfRange(budget, 128, 32_768)]
  ],
  ["Gemini, of a level", "Thinking level MEDIUM is not supported for this model.", [
    refused(`${thinkingConfig}.thinkingLevel`, "MEDIUM")
  ]],
  [
    "Vertex, of a level",
    "Unable to submit request because thinking_level MEDIUM is not supported by this model. Learn more: https://docs",
    [refused(`${thinkingConfig}.thinkingLevel`, "MEDIUM")]
  ],
  ...[
    "Thinking is not enabled for models/gemini-2.0-flash",
    "thinking_config is not supported.",
    "Unable to submit request because Thinking_config.include_thoughts is only enabled when thinking is enabled."
  ].map((message) => ["Gemini, without thinking", message, [field(thinkingConfig)]] as const),
  ["Gemini, of penalties", "Penalty is not enabled for models/gemini-2.5-flash", [
    field("presencePenalty"),
    field("frequencyPenalty")
  ]],
  ["Ollama", "think value \"medium\" is not supported for this model", [value("reasoning_effort")]],
  ["Ollama, without thinking", "\"qwen2.5:7b\" does not support thinking", [field("reasoning_effort")]],
  [
    "Ollama, of a value",
    "invalid reasoning value: 'minimal' (must be \"high\", \"medium\", \"low\", \"max\", or \"none\")",
    [value("reasoning_effort", "high", "medium", "low", "max", "none")]
  ],
  ["Anthropic, of a model", "`temperature` is deprecated for this model.", [field("temperature")]],
  ["Anthropic, while it thinks", "`temperature` may only be set to 1 when thinking is enabled.", [
    field("temperature")
  ]],
  [
    "Bedrock, while it thinks",
    "The model returned the following errors: top_p must be unset when thinking is enabled.",
    [field("top_p")]
  ],
  ["Anthropic, of thinking", "\"thinking.type.enabled\" is not supported for this model.", [
    refused("thinking.type", "enabled")
  ]],
  ["Anthropic, of adaptive thinking", "adaptive thinking is not supported on this model", [
    refused("thinking.type", "adaptive")
  ]],
  ["Anthropic, of an effort", "output_config.effort: Input should be 'low', 'medium' or 'high'", [
    value("output_config.effort", "low", "medium", "high")
  ]],
  ["Anthropic, of efforts", "This model does not support the effort parameter.", [field("output_config.effort")]],
  [
    "Bedrock, of two fields",
    "The model returned the following errors: `temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    [{ _tag: "Conflict", paths: ["temperature", "top_p"] }]
  ],
  [
    "OpenAI, of a value",
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    [value("temperature")],
    "temperature"
  ],
  [
    "OpenAI, of an effort",
    "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'medium', and 'high'.",
    [value("reasoning_effort", "low", "medium", "high")],
    "reasoning_effort"
  ],
  ["OpenAI, of a word", "Invalid value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'.", [
    value("reasoning.effort", "low", "medium", "high")
  ], "reasoning.effort"],
  [
    "Mistral, of an effort",
    "Input should be 'none' or 'high'",
    [value("reasoning_effort", "none", "high")],
    "reasoning_effort"
  ],
  ["Groq, of an effort", "`reasoning_effort` must be one of `low`, `medium`, or `high`", [
    value("reasoning_effort", "low", "medium", "high")
  ]],
  ["Groq, in a plain sentence", "reasoning_effort must be one of none or default", [
    value("reasoning_effort", "none", "default")
  ]],
  [
    "OpenAI, of an effort of Responses",
    "Unsupported value: 'none' is not supported with the 'gpt-5.1-codex' model. Supported values are: 'low', 'medium', and 'high'.",
    [value("reasoning.effort", "low", "medium", "high")],
    "reasoning.effort"
  ],
  [
    "DeepSeek, of an effort",
    "Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant `none`, expected one of `high`, `low`, `medium`, `max`, `xhigh` at line 1 column 68",
    [value("reasoning_effort", "high", "low", "medium", "max", "xhigh")]
  ],
  [
    "SGLang, of an effort",
    "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\", 'input': 'xhigh'}",
    [value("reasoning_effort", "low", "medium", "high")]
  ],
  [
    "Mistral, by names of Python",
    "reasoning_effort='medium' is not supported for this model. Must be one of (<ReasoningEffort.none: 'none'>, <ReasoningEffort.high: 'high'>)",
    [value("reasoning_effort", "none", "high")]
  ],
  ["CLIProxyAPI", "level \"max\" not supported, valid levels: low, medium, high, xhigh", [
    value("reasoning_effort", "low", "medium", "high", "xhigh")
  ]],
  ["a relay", "reasoning_effort 'none' unsupported; use minimal|low|medium|high|xhigh", [
    value("reasoning_effort", "minimal", "low", "medium", "high", "xhigh")
  ]],
  ["another relay", "[invalid_request_error] \"reasoning.effort\" does not support \"none\" with this model.", [
    refused("reasoning.effort", "none")
  ]],
  ["OpenRouter", "Reasoning is mandatory for this endpoint and cannot be disabled.", [
    refused("reasoning_effort", "none"),
    refused("thinking.type", "disabled")
  ]],
  [
    "OpenAI, of a limit of Responses",
    "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 16384, but got 32000 instead.",
    [most(16_384)],
    "max_output_tokens"
  ],
  ["Groq, of a limit of a model", "max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000", [
    most(8_000)
  ]],
  [
    "Ollama, of a limit",
    "max_tokens (384000) exceeds model's maximum output tokens (65536) for model deepseek-v4-flash:0731",
    [most(65_536)]
  ],
  ["a relay, of a limit", "max_tokens (current value: 4096) must be between 0 and 4000 ", [most(4_000)]],
  ["TGI, of a limit", "Input validation error: `max_new_tokens` must be <= 192. Given: 300", [most(192)]],
  ["DeepSeek, of a limit", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", [most(8_192)]],
  ["Qwen, of a limit", "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 16384]", [
    most(16_384)
  ]],
  [
    "OpenAI, of a large limit",
    "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
    [most(16_384)],
    "max_tokens"
  ],
  [
    "Anthropic, of a limit",
    "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku",
    [most(8_192)]
  ],
  [
    "Groq, of a limit",
    "`max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens`",
    [most(8_192)]
  ],
  [
    "Bedrock, of a limit",
    "The maximum tokens you requested exceeds the model limit of 8192. Try again with a maximum tokens value",
    [most(8_192)]
  ],
  [
    "Gemini, of a limit",
    "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive).",
    [most(65_536)]
  ],
  [
    "vLLM, of its window",
    "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (8000 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.",
    [over(32_768, 8_000)]
  ],
  [
    "vLLM 0.10",
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 5000 input tokens (32000 > 32768 - 5000).",
    [over(32_768, 5_000)]
  ],
  [
    "vLLM 0.15",
    "This model's maximum context length is 2048 tokens. However, your request has 8 input tokens plus 2045 'max_tokens'. Please reduce one or the other.",
    [over(2_048, 8)]
  ],
  [
    "vLLM 0.20",
    "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens.",
    [over(128_000, 62_466)]
  ],
  [
    "SGLang",
    "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 37000 tokens: 5000 tokens from the input messages and 32000 tokens for the completion.",
    [over(32_768, 5_000)]
  ],
  [
    "Anthropic, of its window",
    "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again",
    [over(200_000, 190_000)]
  ],
  ["TGI", "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`", [
    over(4_096, 3_000)
  ]],
  ["DeepSeek, of a forced call", "Thinking mode does not support this tool_choice", [forced]],
  [
    "Qwen, of a forced call",
    "The tool_choice parameter does not support being set to required or object in thinking mode",
    [forced]
  ],
  ["Anthropic, of a forced call", "Thinking may not be enabled when tool_choice forces tool use.", [forced]],
  ["Moonshot, of a forced call", "tool_choice 'specified' is incompatible with thinking enabled", [forced]],
  ...[
    ["Groq", "json mode cannot be combined with tool/function calling"],
    ["Groq, of a form", "'response_format` json_object cannot be combined with tool/function calling"],
    ["Gemini", "Function calling with a response mime type: 'application/json' is unsupported"],
    ["Gemini, of a tool", "Tool use with a response mime type: 'application/json' is unsupported"],
    [
      "Gemini, of a forced call",
      "Forced function calling (ANY mode) with a response mime type: 'application/json' is unsupported"
    ],
    [
      "Vertex",
      "For controlled generation of only function calls (forced function calling), please set 'tool_config.function_calling_config.mode' field to ANY instead of populating 'response_mime_type' and 'response_schema' fields."
    ],
    ["Cerebras", "\"tools\" is incompatible with \"response_format\""],
    ["Fireworks", "You cannot specify response format and function call at the same time"],
    ["llama.cpp", "Cannot use custom grammar constraints with tools."],
    ["vLLM", "You can only use one kind of structured outputs constraint but multiple are specified"]
  ].map(([server = "", message = ""]) =>
    [`${server}, of tools beside a schema`, message, [{ _tag: "ToolsOrSchema" }]] as const
  ),
  [
    "LiteLLM, of a model",
    "litellm.UnsupportedParamsError: gpt-5 models (including gpt-5-codex) don't support temperature=0.5. Only temperature=1 is supported.",
    [field("temperature")],
    "None"
  ],
  [
    "LiteLLM, of another server's words",
    "litellm.BadRequestError: BedrockException - {\"message\":\"The model returned the following errors: temperature: Extra inputs are not permitted\"}. Received Model Group=m",
    [field("temperature")]
  ],
  ["Moonshot, of a value", "invalid temperature: only 1 is allowed for this model", [field("temperature")]],
  ["LM Studio, of a forced call", "Invalid tool_choice type: 'object'. Supported string values: none, auto, required", [
    forced
  ]],
  ["vLLM, of a forced call", "tool_choice = \"required\" is not supported!", [forced]],
  ["DeepSeek, of a schema", "This response_format type is unavailable now", [{ _tag: "NoSchema" }]],
  ["LM Studio, of an object", "'response_format.type' must be 'json_schema' or 'text'", [
    value("response_format.type", "json_schema", "text")
  ]],
  ["Groq, of a schema", "This model does not support response format `json_schema`. See supported models", [
    { _tag: "NoSchema" }
  ]],
  [
    "Bedrock, of a schema",
    "The model returned the following errors: output_config.format: Extra inputs are not permitted",
    [field("output_config.format"), { _tag: "NoSchema" }]
  ],
  ["vLLM, of turns", "Conversation roles must alternate user/assistant/user/assistant/...", [{
    _tag: "AlternateTurns"
  }]],
  ["llama.cpp, of turns", "After the optional system message, conversation roles must alternate user/assistant", [
    { _tag: "AlternateTurns" }
  ]],
  ["vLLM, of a system turn", "System role not supported", [{ _tag: "NoSystem" }]],
  [
    "Cerebras, of strict tools",
    "Tools with mixed values for 'strict' are not allowed. Please set all tools to 'strict: true' or 'strict: false'",
    [{ _tag: "MixedStrict" }]
  ],
  [
    "Bedrock, of strict tools",
    "The model returned the following errors: tools.0.custom.strict: Extra inputs are not permitted",
    [field("tools.0.custom.strict")]
  ],
  [
    "OpenAI, of a name",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 95 instead.",
    [long("tools.function.name", 64)],
    "tools[0].function.name"
  ],
  [
    "OpenAI, of an id",
    "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 46 instead.",
    [long("messages.tool_calls.id", 40)]
  ],
  ["Anthropic, of a name", "tools.0.custom.name: String should have at most 64 characters", [
    long("tools.custom.name", 64)
  ]],
  ["Mistral, of an id", "Tool call id was call_0fypS1hVX but must be a-z, A-Z, 0-9, with a length of 9.", [
    long("messages.tool_calls.id", 9)
  ]],
  [
    "a prompt that is too long",
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 in the messages, 100 in the completion).",
    []
  ],
  ["other words", "The request is invalid: messages must not be empty", []]
]

describe("the refusal of a server", () => {
  it.each(rows)("says which part of the request it is about: %s", (_, message, parts, param) => {
    const facts = errorFacts({
      error: { message, type: "invalid_request_error", ...(param === undefined ? {} : { param }) }
    })
    assert.deepStrictEqual(facts.refused ?? [], parts)
  })

  it.each([
    ["in JSON", {
      error: { message: "Unsupported parameter: 'top_k' is not supported with this model.", param: "top_k" }
    }],
    ["of a server without an error object", { message: "top_k: Extra inputs are not permitted" }],
    ["in words", "top_k: Extra inputs are not permitted"]
  ])("is read from what a server repeats of another one: %s", (_, said) => {
    const raw = typeof said === "string" ? said : JSON.stringify(said)
    const facts = errorFacts({ error: { message: "Provider returned error", code: 400, metadata: { raw } } })
    assert.deepStrictEqual(facts.refused, [field("top_k")])
    assert.include(facts.message, "top_k")
  })

  it("says so by the details of FastAPI", () => {
    const extra = (name: string) => ({
      type: "extra_forbidden",
      loc: ["body", name],
      msg: "Extra inputs are not permitted"
    })
    const detail = [extra("verbosity"), extra("store"), {
      type: "missing",
      loc: ["body", "model"],
      msg: "Field required"
    }]
    const parts = [field("verbosity"), field("store")]
    for (const body of [{ detail }, { object: "error", message: { detail } }]) {
      assert.includeDeepMembers([...errorFacts(body).refused ?? []], parts)
    }
  })
})
