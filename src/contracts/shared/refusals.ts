/**
 * The words by which servers refuse a part of a request, in one table. Each row has the words of one or more servers, from their documents and
 * from public reports. A refusal may match several rows, and a row several times.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { keyOfPart, type RefusedPart } from "../../domain/refusedParts.ts"

type Found = RegExpExecArray

interface Row {
  readonly words: RegExp
  readonly part: (found: Found, param: string | undefined) => RefusedPart | ReadonlyArray<RefusedPart> | undefined
}

/** Characters of a message that are read, and parts of it that are kept. */
const longestMessage = 2_000
const mostParts = 16

/** Servers name the thinking of a turn by its place and role, or by its name alone: it is the same field in all turns. */
const ofTurn = /^(?:messages(?:\.|\[)\d+\]?\.(?:assistant\.)?(?=reasoning)|(?=reasoning_(?:content|details)$))/

const field = (path: string | undefined): RefusedPart | undefined =>
  path === undefined ? undefined : { _tag: "UnsupportedField", path: path.replace(ofTurn, "messages.") }

const refusedValue = (path: string, value: string | undefined = ""): RefusedPart => ({
  _tag: "RefusedValue",
  path,
  value
})

/** The names of a list, which may end with its sentence. */
const namesIn = (text: string): ReadonlyArray<string> => text.split(/\. /, 1)[0]!.match(/\w+(?:\.\w+)*/g) ?? []

const value = (path: string | undefined, allowed: string): RefusedPart | undefined =>
  path === undefined ? undefined : {
    _tag: "UnsupportedValue",
    path,
    allowed: (allowed.match(/[\w.-]+/g) ?? []).filter((word) => word !== "or" && word !== "and")
  }

const first = ({ 1: name }: Found) => field(name)
const all = ({ 1: names = "" }: Found) => namesIn(names).flatMap((name) => field(name) ?? [])
const most = ({ 1: tokens }: Found): RefusedPart => ({ _tag: "TooLarge", most: Number(tokens) })

const window = (window: string | undefined, prompt: string | undefined): RefusedPart | undefined =>
  Number(prompt) < Number(window) ? { _tag: "OverWindow", window: Number(window), prompt: Number(prompt) } : undefined

/** A text that is too long, by its path without indices. */
const long = (path: string, most: string): RefusedPart => ({
  _tag: "TooLong",
  path: path.replace(/\[\d+\]|\.\d+(?=\.|$)/g, ""),
  most: Number(most)
})

const quoted = "[`'\"]"

const effort = "reasoning_effort"
const thinkingConfig = "generationConfig.thinkingConfig"
const thinkingBudget = `${thinkingConfig}.thinkingBudget`

/** The most of a number of the content-generation contract. */
const mostInt32 = 2 ** 31 - 1

const rows: ReadonlyArray<Row> = [
  // Fields. OpenAI and Azure.
  { words: /Unsupported parameter: '([\w.]+)'/g, part: first },
  { words: /Unknown parameter: '([\w.]+)'/g, part: first },
  { words: /Unrecognized request arguments? supplied: ([\w., ]{1,500})/g, part: all },
  { words: /Validation error at #\/([\w/]+): Extra inputs/g, part: ({ 1: at = "" }) => field(at.replaceAll("/", ".")) },
  // Pydantic: vLLM, Anthropic, Bedrock, Fireworks.
  { words: /'loc': \('body', '(\w+)'\), 'msg': 'Extra inputs/g, part: first },
  {
    words: /'loc': \('body', 'messages', \d+, (?:'\w+', )?'(reasoning\w*)'\), 'msg': 'Extra inputs/g,
    part: ({ 1: name }) => field(`messages.${name}`)
  },
  { words: /(?:^|[\s"])([\w.]+): Extra inputs are not permitted/g, part: first },
  { words: /Extra inputs are not permitted, field: '([\w.[\]]+)'/g, part: first },
  { words: /^Extra inputs are not permitted$/g, part: (_, param) => field(param) },
  // Groq and Cerebras.
  { words: /property '([\w.]+)' is unsupported/g, part: first },
  { words: /`(\w+)` is not supported with this model/g, part: first },
  // xAI, llama.cpp, NVIDIA, Cohere, LiteLLM, serde and Go.
  { words: /Argument not supported on this model: (\w+)/g, part: first },
  { words: /Model \S{1,100} does not support parameter (\w+)/g, part: first },
  { words: /Unsupported parameter\(s\): ([\w`'., ]{1,500})/g, part: all },
  {
    words: /unknown field: parameter '?([\w.]+)'? is not a valid field/g,
    part: ({ 1: name }) => field(name === "strict" ? "tools.strict" : name)
  },
  { words: /Unsupported param: (\w+)/g, part: first },
  { words: /\bdon't support (\w+)=/g, part: first },
  { words: /does not support parameters: \[([\w', ]{1,500})\]/g, part: all },
  { words: new RegExp(`unknown field ${quoted}([\\w.]+)${quoted}`, "g"), part: first },
  // Responses servers whose model seals nothing.
  {
    words:
      /encrypted[ _.]content\b.{0,80}\b(?:not (?:supported|available|enabled)|unsupported)|\b(?:unsupported|unknown|invalid value)\b.{0,80}encrypted[ _.]content/i,
    part: () => field("include")
  },
  // Copilot, xAI and LM Studio, of a model that has no efforts.
  {
    words: /\b(?:does not support reasoning effort|does not expose reasoning configuration)\b/g,
    part: () => field(effort)
  },
  // Limits of output that have two names, and fields that a refusal names, in any words.
  {
    words:
      /\b(max_(?:completion_)?tokens)\b['"`]?[^.]{0,40}\b(?:unsupported|not (?:supported|permitted|allowed|recogni[sz]ed))/gi,
    part: first
  },
  {
    words: /\b(?:unsupported|unrecogni[sz]ed|unknown|unexpected)\b[^.]{0,40}?\b(max_(?:completion_)?tokens)\b/gi,
    part: first
  },
  {
    words:
      /\b(?:unsupported (?:field|parameter|argument)|unknown (?:field|parameter|argument)|unrecogni[sz]ed|not (?:supported|permitted))\b/i,
    part: (_, param) => field(param)
  },
  // Gemini.
  {
    words: /Unknown name "(\w+)"(?: at '([\w.]+)')?: Cannot find field/g,
    part: ({ 1: name, 2: at }) => field(at === undefined ? name : `${at}.${name}`)
  },
  {
    words: /Thinking (budget|level) is not supported for this model/g,
    part: ({ 1: kind }) => field(`${thinkingConfig}.thinking_${kind}`)
  },
  {
    words:
      /Thinking is not enabled for|thinking_config is not supported|include_thoughts is only enabled when thinking is/gi,
    part: () => field(thinkingConfig)
  },
  {
    words: /thinking[ _]level ([A-Z]+) is not supported (?:by|for) this model/gi,
    part: ({ 1: level }) => refusedValue(`${thinkingConfig}.thinkingLevel`, level)
  },
  {
    words:
      /Budget 0 is invalid|does not support setting thinking_budget to 0|Thinking can't be disabled for this model/g,
    part: () => ({ _tag: "OutOfRange", path: thinkingBudget, least: 1, most: mostInt32 })
  },
  { words: /thinking budget \((\d{1,9})\) is invalid/g, part: ({ 1: budget }) => refusedValue(thinkingBudget, budget) },
  {
    words: /thinking_budget is out of range; supported values are integers from (\d{1,9}) to (\d{1,9})/g,
    part: ({ 1: least, 2: most }) => ({
      _tag: "OutOfRange",
      path: thinkingBudget,
      least: Number(least),
      most: Number(most)
    })
  },
  {
    words: /Penalty is not enabled for/g,
    part: () => ["presencePenalty", "frequencyPenalty"].flatMap((name) => field(name) ?? [])
  },
  // Ollama.
  { words: /^think value .{1,40} is not supported\b/g, part: () => value("reasoning_effort", "") },
  {
    words: /invalid reasoning value: '\w+'(?: \(must be ([^)]{1,200})\))?/g,
    part: ({ 1: allowed = "" }) => value("reasoning_effort", allowed.replace(/one of/, ""))
  },
  { words: /^"[^"]{1,200}" does not support thinking$/g, part: () => field("reasoning_effort") },
  // Anthropic and Bedrock.
  { words: /`(\w+)` is deprecated for this model/g, part: first },
  { words: /`?(temperature)`? may only be set to 1 when thinking/g, part: first },
  { words: /`?(top_[pk])`? must be (?:unset|greater than or equal to 0\.95) when thinking/g, part: first },
  {
    words:
      /"thinking\.type\.(\w+)" is not supported for this model|(adaptive) thinking is not supported on this model/g,
    part: ({ 1: type, 2: other }) => refusedValue("thinking.type", type ?? other)
  },
  { words: /This model does not support the effort parameter/g, part: () => field("output_config.effort") },
  {
    words: /`(\w+)` and `(\w+)` cannot both be specified for this model/g,
    part: ({ 1: one = "", 2: other = "" }) => ({ _tag: "Conflict", paths: [one, other] })
  },
  {
    words: /You can only set only one of thinking budget and thinking level/g,
    part: () => ({
      _tag: "Conflict",
      paths: ["generationConfig.thinkingConfig.thinkingLevel", "generationConfig.thinkingConfig.thinkingBudget"]
    })
  },
  // Moonshot.
  { words: /invalid (\w+): only [\w.]{1,20} is allowed for this model/g, part: first },
  // Values. OpenAI, pydantic (vLLM, Mistral), Groq.
  {
    words:
      /Unsupported value: '([\w.]+)' does not support .{1,100}? with (?:this|the '[^']{1,100}') model\.(?: Supported values are: ([^.]{1,300})\.)?/g,
    part: ({ 1: path, 2: allowed = "" }) => value(path, allowed)
  },
  {
    words:
      /Unsupported value: '[^']{1,100}' is not supported with the '[^']{1,100}' model\. Supported values are: ([^.]{1,300})\./g,
    part: ({ 1: allowed = "" }, param) => value(param, allowed)
  },
  {
    words: /^Invalid value: '[^']{1,100}'\. Supported values are: ([^.]{1,300})\./g,
    part: ({ 1: allowed = "" }, param) => value(param, allowed)
  },
  {
    words: /^Input should be ('[^.\]]{1,300}')$/g,
    part: ({ 1: allowed = "" }, param) => value(param, allowed)
  },
  {
    words: /([\w.]{1,100}): Input should be ('[^.\]]{1,300}')/g,
    part: ({ 1: path, 2: allowed = "" }) => value(path, allowed)
  },
  {
    words: /'loc': \('body', '(\w+)'\), 'msg': ["']Input should be ('[^"\]]{1,300}')["'],/g,
    part: ({ 1: path, 2: allowed = "" }) => value(path, allowed)
  },
  {
    words: /`?\b(\w+)`? must be one of ([^.]{1,300})/g,
    part: ({ 1: path, 2: allowed = "" }) => value(path, allowed)
  },
  // DeepSeek (serde), CLIProxyAPI, relays, OpenRouter.
  {
    words: /\b(\w+): unknown variant `\w{1,40}`, expected (?:one of )?((?:`\w{1,40}`(?:, | or )?){1,20})/g,
    part: ({ 1: path, 2: allowed = "" }) => value(path, allowed)
  },
  {
    words: /\blevel "\w{1,40}" not supported, valid levels: ([\w, ]{1,300})/g,
    part: ({ 1: allowed = "" }) => value(effort, allowed)
  },
  {
    words: /\b(\w+) '\w{1,40}' unsupported; use ([\w|]{1,300})/g,
    part: ({ 1: path, 2: allowed = "" }) => value(path, allowed)
  },
  {
    words: /(?<!Unsupported value: )["']([\w.]{1,100})["'] does not support ["'](\w{1,40})["'] with this model/g,
    part: ({ 1: path = "", 2: refused }) => refusedValue(path, refused)
  },
  {
    words: /Reasoning is mandatory for this endpoint and cannot be disabled/g,
    part: () => [refusedValue(effort, "none"), refusedValue("thinking.type", "disabled")]
  },
  // Mistral, by Python's names of enumerations.
  {
    words: /\b(\w+)='\w{1,40}' is not supported for this model\. Must be one of \(([^)]{1,300})\)/g,
    part: ({ 1: path, 2: allowed = "" }) =>
      value(path, Array.from(allowed.matchAll(/'(\w+)'/g), ([, word]) => word).join(" "))
  },
  // Limits of output. DeepSeek, Qwen, OpenAI, Anthropic, Groq, Gemini, Bedrock.
  { words: /valid range of max_tokens is \[\d+, ?(\d{1,9})\]/g, part: most },
  { words: /Range of max_tokens should be \[\d+, ?(\d{1,9})\]/g, part: most },
  { words: /This model supports at most (\d{1,9}) completion tokens/g, part: most },
  { words: /max_tokens: \d+ > (\d{1,9}), which is the maximum allowed number of output tokens/g, part: most },
  {
    words: /max(?:_completion)?_tokens`? (?:for `[^`]{1,100}` )?must be less than or equal to `?(\d{1,9})/g,
    part: most
  },
  { words: /Invalid 'max_\w{1,40}': integer above maximum value\. Expected a value <= (\d{1,9})/g, part: most },
  { words: /max_tokens \(\d+\) exceeds model's maximum output tokens \((\d{1,9})\)/g, part: most },
  { words: /max_\w{0,20}tokens \(current value: \d+\) must be between \d+ and (\d{1,9})/g, part: most },
  { words: /(?<!\+ )`max_(?:new_)?tokens` must be <= (\d{1,9})/g, part: most },
  { words: /maximum tokens you requested exceeds the model limit of (\d{1,9})/g, part: most },
  {
    words: /supported range is from \d+ \(inclusive\) to (\d{1,9}) \(exclusive\)/g,
    part: ({ 1: end }) => ({ _tag: "TooLarge", most: Number(end) - 1 })
  },
  // Windows. vLLM in several versions, OpenAI, DeepSeek, SGLang, Anthropic, TGI.
  {
    words:
      /maximum context length is (\d{1,9}) tokens\. However, you requested \d+ tokens \((\d{1,9}) in the messages/g,
    part: ({ 1: size, 2: prompt }) => window(size, prompt)
  },
  {
    words: /maximum context length is (\d{1,9}) tokens\. However, your request has (\d{1,9}) input tokens plus/g,
    part: ({ 1: size, 2: prompt }) => window(size, prompt)
  },
  {
    words:
      /maximum context length is (\d{1,9}) tokens\.\s+However, you requested \d+ output tokens and your prompt contains at least (\d{1,9}) input/g,
    part: ({ 1: size, 2: prompt }) => window(size, prompt)
  },
  {
    words:
      /is too large: \d+\. ?This model's maximum context length is (\d{1,9}) tokens and your request has (\d{1,9}) input/g,
    part: ({ 1: size, 2: prompt }) => window(size, prompt)
  },
  {
    words:
      /maximum context length of (\d{1,9}) tokens\. You requested a total of \d+ tokens: (\d{1,9}) tokens from the input/g,
    part: ({ 1: size, 2: prompt }) => window(size, prompt)
  },
  {
    words: /exceed context limit: (\d{1,9}) \+ \d{1,9} > (\d{1,9})/g,
    part: ({ 1: prompt, 2: size }) => window(size, prompt)
  },
  {
    words: /must be <= (\d{1,9})\. Given: (\d{1,9}) `inputs` tokens/g,
    part: ({ 1: size, 2: prompt }) => window(size, prompt)
  },
  // Forced calls. DeepSeek, Qwen, Anthropic, Moonshot, LM Studio, vLLM.
  {
    words:
      /[Tt]hinking (?:mode does not support this|may not be enabled when) tool_choice|tool_choice\b[^.]{0,100}\b(?:in thinking mode|incompatible with thinking)|Invalid tool_choice type: 'object'|tool_choice = "required" is not supported/g,
    part: () => ({ _tag: "ForcedCall" })
  },
  // Tools beside a schema. Groq, Gemini, Cerebras, Fireworks, llama.cpp, vLLM.
  {
    words:
      /(?:json mode|response_format`? json_\w+) cannot be combined with tool|(?:Function calling|Tool use)(?: \(\w+ mode\))? with a response mime type|instead of populating 'response_mime_type'|"tools" is incompatible with "response_format"|cannot specify response format and function call|custom grammar constraints with tools|only use one kind of (?:structured outputs|guided decoding)/gi,
    part: () => ({ _tag: "ToolsOrSchema" })
  },
  // Schemas. LM Studio, DeepSeek, Groq, Bedrock.
  {
    words: /'response_format\.type' must be ([^.]{1,100})/g,
    part: ({ 1: allowed = "" }) => value("response_format.type", allowed)
  },
  {
    words:
      /This response_format type is unavailable|does not support response format `json_\w+`|(?<![\w.])(?:output_format|output_config\.format): Extra inputs/g,
    part: () => ({ _tag: "NoSchema" })
  },
  // Templates of prompts: vLLM, llama.cpp, TGI.
  { words: /onversation roles must alternate/g, part: () => ({ _tag: "AlternateTurns" }) },
  { words: /System role not supported/gi, part: () => ({ _tag: "NoSystem" }) },
  // Cerebras.
  { words: /Tools with mixed values for 'strict' are not allowed/g, part: () => ({ _tag: "MixedStrict" }) },
  // Lengths. OpenAI, Anthropic, Mistral.
  {
    words: /Invalid '([\w.[\]]{1,100})': string too long\. Expected a string with maximum length (\d{1,9})/g,
    part: ({ 1: path = "", 2: most = "" }) => long(path, most)
  },
  {
    words: /([\w.]{1,100}): String should have at most (\d{1,9}) characters/g,
    part: ({ 1: path = "", 2: most = "" }) => long(path, most)
  },
  {
    words: /Tool call id was .{1,200} but must be a-z, A-Z, 0-9, with a length of (\d{1,2})/g,
    part: ({ 1: most = "" }) => long("messages.tool_calls.id", most)
  }
]

/** The fields of FastAPI's details that are extra inputs: Mistral, vLLM. */
const extrasIn = (error: JsonRecord): ReadonlyArray<RefusedPart> => {
  const message = error["message"]
  const details = error["detail"] ?? (isRecord(message) ? message["detail"] : undefined)
  return (Array.isArray(details) ? details.slice(0, mostParts) : []).flatMap((detail: unknown) => {
    if (!isRecord(detail) || detail["type"] !== "extra_forbidden" || !Array.isArray(detail["loc"])) return []
    return field(detail["loc"].filter((key) => key !== "body").join(".")) ?? []
  })
}

const matchesOf = (text: string, words: RegExp): Iterable<Found> => {
  if (words.global) return text.matchAll(words)
  const found = words.exec(text)
  return found === null ? [] : [found]
}

/** The words of a message that refuse something. */
export const refusingWords = (message: string): ReadonlyArray<string> => {
  const text = message.slice(0, longestMessage)
  return rows.flatMap(({ words }) => Array.from(matchesOf(text, words), ([found]) => found))
}

/** The parts of the request that an error refuses, by its message and the field that it names. */
export const refusedParts = (
  error: JsonRecord,
  message: string | undefined,
  param: string | undefined
): ReadonlyArray<RefusedPart> => {
  const text = (message ?? "").slice(0, longestMessage)
  const found = rows.flatMap(({ part, words }) =>
    Array.from(matchesOf(text, words), (match) => part(match, param) ?? []).flat()
  )
  // Several rows may have the same words. One that knows the values says more.
  const parts = new Map<string, RefusedPart>()
  for (const part of [...extrasIn(error), ...found]) {
    const key = keyOfPart(part)
    const known = parts.get(key)
    if (known?._tag === "UnsupportedField" && part._tag === "UnsupportedValue") parts.set(key, part)
    else if (known === undefined && parts.size < mostParts) parts.set(key, part)
  }
  return [...parts.values()]
}
