/**
 * Tool calls as text, in the forms of various model families; `json` is the JSON text of the call's arguments.
 */

type Form = (name: string, json: string) => string

const record = (json: string): ReadonlyArray<readonly [key: string, value: unknown]> => {
  const value: unknown = JSON.parse(json)
  return typeof value === "object" && value !== null ? Object.entries(value) : []
}

const plain = (value: unknown): string => typeof value === "string" ? value : JSON.stringify(value)

const python = (value: unknown): string =>
  value === true ? "True" : value === false ? "False" : value === null ? "None" : JSON.stringify(value)

/** The arguments between parentheses. */
const keywords = (json: string): string => record(json).map(([key, value]) => `${key}=${python(value)}`).join(", ")

/** The arguments as FunctionGemma writes them: no quotation marks, strings between escape tokens. */
const escaped = (value: unknown): string => {
  if (typeof value === "string") return `<escape>${value}<escape>`
  if (Array.isArray(value)) return `[${value.map(escaped).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  return `{${Object.entries(value).map(([key, inner]) => `${key}:${escaped(inner)}`).join(",")}}`
}

const tags = (json: string, tag: (key: string, value: string) => string): string =>
  record(json).map(([key, value]) => tag(key, plain(value))).join("")

/** Forms by name; the gateway's prompts ask for `tool_call`. */
export const callForms = {
  "tool_call": (name, json) => `<tool_call>{"name":${JSON.stringify(name)},"arguments":${json}}</tool_call>`,
  "tool_calls": (name, json) => `{"tool_calls":[{"name":${JSON.stringify(name)},"input":${json}}]}`,
  "json": (name, json) => `{"name":${JSON.stringify(name)},"arguments":${json}}`,
  "function": (name, json) =>
    `<tool_call><function=${name}>${tags(json, (key, value) => `<parameter=${key}>${value}</parameter>`)}` +
    `</function></tool_call>`,
  "invoke": (name, json) =>
    `<tool_calls><invoke name="${name}">${
      tags(json, (key, value) => `<parameter name="${key}">${value}</parameter>`)
    }</invoke></tool_calls>`,
  "markup": (name, json) =>
    `<｜DSML｜tool_calls><｜DSML｜invoke name="${name}">${
      tags(json, (key, value) => `<｜DSML｜parameter name="${key}">${value}</｜DSML｜parameter>`)
    }</｜DSML｜invoke></｜DSML｜tool_calls>`,
  "special": (name, json) =>
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n${json}\n\`\`\`` +
    `<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  "section": (name, json) =>
    `<|tool_calls_section_begin|><|tool_call_begin|>functions.${name}:0<|tool_call_argument_begin|>${json}` +
    `<|tool_call_end|><|tool_calls_section_end|>`,
  "brackets": (name, json) => `[TOOL_CALLS][{"name":${JSON.stringify(name)},"arguments":${json}}]`,
  "tool_use": (name, json) => `<tool_use><name>${name}</name><input>${json}</input></tool_use>`,
  "pythonic": (name, json) => `[${name}(${keywords(json)})]`,
  "lfm": (name, json) => `<|tool_call_start|>[${name}(${keywords(json)})]<|tool_call_end|>`,
  "command_r": (name, json) =>
    `<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": ${
      JSON.stringify(name)
    }, "parameters": ${json}}\n]<|END_ACTION|>`,
  "nemotron": (name, json) => `<TOOLCALL>[{"name": ${JSON.stringify(name)}, "arguments": ${json}}]</TOOLCALL>`,
  "functools": (name, json) => `functools[{"name": ${JSON.stringify(name)}, "arguments": ${json}}]`,
  "phi": (name, json) => `<|tool_call|>[{"name": ${JSON.stringify(name)}, "arguments": ${json}}]<|/tool_call|>`,
  "function_gemma": (name, json) => `<start_function_call>call:${name}${escaped(JSON.parse(json))}<end_function_call>`,
  "tool_code": (name, json) => `\`\`\`tool_code\nprint(${name}(${keywords(json)}))\n\`\`\``,
  "action": (name, json) => `Action: ${name}\nAction Input: ${json}`,
  "fenced": (name, json) => `\`\`\`json\n{"tool_calls":[{"name":${JSON.stringify(name)},"arguments":${json}}]}\n\`\`\``
} as const satisfies Readonly<Record<string, Form>>

type CallForm = keyof typeof callForms

export const isCallForm = (name: string): name is CallForm => Object.hasOwn(callForms, name)

/** A call of `name` as text. `json` is the text of a JSON object. */
export const writeCall = (form: CallForm, name: string, json: string): string => callForms[form](name, json)
