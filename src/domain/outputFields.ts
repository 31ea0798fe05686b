/**
 * Names of fields by which servers make a longer reply, more replies, or another prompt than the gateway counts. Servers differ in how they
 * read names, so a name stands for every spelling: in any case, and with `_`, `-` or nothing between its words.
 */
import { type GatewayError, invalidRequest, shortenName } from "./GatewayError.ts"
import { isRecord } from "./json.ts"
import { remembering } from "./remembering.ts"
import { type Cooperative, Slice } from "./stream/cooperative.ts"

/** What a field says of a request's use. */
const kinds = {
  /** The tokens of a reply at most, or at least: llama.cpp, vLLM, TGI, Ollama, SGLang, Bedrock and others. */
  length:
    /^(?:max|min)(?:imum)?(?:output|completion|new|gen(?:erat(?:ed|ion))?|decode|response|reply|answer|out)*(?:tokens?|len(?:gth)?)(?:count|limit|to(?:sample|generate))?$|^n(?:um)?predict$|^tokenstogenerate$|^outputlen(?:gth)?$/iu,
  /** The tokens of thinking at most, which some servers add to those of the reply. */
  budget:
    /^(?:thinking|reasoning)?(?:token)?budget(?:tokens?)?$|^(?:max)?(?:thinking|reasoning)(?:max)?(?:tokens?|length)$/iu,
  /** Replies to one request, as the contract of completions counts them. */
  choices: /^n$|^bestof$/iu,
  /** Replies, or candidates of one, by other words. */
  copies:
    /^ncmpl$|^(?:num)?beams?(?:width|size)?$|^usebeamsearch$|^(?:n|num)(?:return)?(?:sequences|completions|generations|outputs|samples|choices|candidates)$|^candidatecount$/iu,
  /** Text or tokens that become a part of the prompt, or of the bill, and that no estimate counts. */
  prompt:
    /^documents?$|^chattemplate$|^(?:prompt|input)(?:embeds|ids|tokenids)$|^mmprocessorkwargs$|^cachedcontent$|^prediction$|^(?:web)?search(?:options|parameters)$|^(?:enable)?(?:web)?search$|^plugins$|^mcpservers$/iu
} as const

type Kind = keyof typeof kinds

const kindNames = Object.keys(kinds) as ReadonlyArray<Kind>

/** Fields of what a request says, whose inner names are the caller's own. */
const contents =
  /^(?:messages|input|contents?|tools?|toolchoice|toolconfig|functions?|functioncall|system|systeminstructions?|instructions|prompt|metadata|labels|text|output(?:config|format)|responseformat|(?:response)?(?:json)?schema|structuredoutputs?|guided(?:json|grammar)|grammar|logitbias)$/iu

/** Values for a template of prompts, which names them as it likes. */
const templateValues = /^(?:chat)?template(?:kw)?args$/iu

/** Characters of a value that chooses within a template: `low`, `enabled`. */
const longestWord = 64

const isWord = (value: unknown): boolean =>
  typeof value === "boolean" || typeof value === "number" || (typeof value === "string" && value.length <= longestWord)

/** Levels of objects that are searched, and characters of a name that is compared. */
const [deepest, longestName] = [5, 64]

/** What the name of a field says. A request has about ten fields, whose names take longer to compare than all else that is read of it. */
const wordsOf = remembering((field) => {
  const name = field.replace(/[_-]/g, "")
  return {
    kind: kindNames.find((each) => kinds[each].test(name)),
    isContent: contents.test(name),
    isTemplate: templateValues.test(name),
    isThinking: /^(?:thinking|reasoning)(?:config)?$/iu.test(name)
  }
})

/** A field, and what its value amounts to: `Infinity` for one that bounds nothing. */
export interface OutputField {
  readonly path: string
  readonly amount: number
}

/** Of each kind the field that says most; absent without one. */
export type OutputFields = { readonly [K in Kind]?: OutputField }

/**
 * The error of a request whose fields make more than a strict limit reserves for it, which is `most` tokens of output in each of so
 * many replies; `undefined` without one.
 */
export const outputFault = (
  { budget, choices, copies, length, prompt }: OutputFields,
  most: number,
  replies = 1
): GatewayError | undefined => {
  const refuse = ({ path }: OutputField, why: string) =>
    invalidRequest(`${shortenName(path)}: a strict limit or budget applies, ${why}`, path)
  for (const field of [length, budget]) {
    if (field !== undefined && field.amount > most) {
      return refuse(field, `which reserves ${most} tokens of output; leave the field out, or set it to at most that`)
    }
  }
  const more = choices !== undefined && choices.amount > replies ? choices : copies
  if (more !== undefined && (more === choices || more.amount > 1)) {
    return refuse(more, `which reserves ${replies === 1 ? "one reply" : `${replies} replies`}; leave the field out`)
  }
  return prompt && refuse(prompt, "which reserves nothing for what the field adds to the prompt; leave it out")
}

/** What a value amounts to as a number of tokens or replies. Servers read a negative one, and some read 0, as no limit. */
const amountOf = (kind: Kind, value: unknown): number => {
  if (kind === "prompt" || typeof value !== "number" || !Number.isInteger(value)) return Infinity
  // A budget of 0 is no thinking, and a negative one leaves it to the model, within the limit of output.
  return value > 0 ? value : kind === "budget" ? 0 : Infinity
}

/** Finds them in a parsed body. A field that is `null` or `false` says nothing. */
export function* outputFields(body: unknown): Cooperative<OutputFields> {
  if (!isRecord(body)) return {}
  const slice = new Slice()
  const found: { [K in Kind]?: OutputField } = {}
  const note = (kind: Kind, path: string, value: unknown): void => {
    const amount = amountOf(kind, value)
    if (amount > (found[kind]?.amount ?? -1)) found[kind] = { path, amount }
  }
  const level = [{ fields: body, path: "", depth: 1, isTemplate: false, isThinking: false }]
  for (let next = level.pop(); next !== undefined; next = level.pop()) {
    const { depth, fields, isTemplate, isThinking, path } = next
    for (const field of Object.keys(fields)) {
      if (slice.add(1)) yield slice.end()
      const value = fields[field]
      if (value === null || value === false) continue
      const words = wordsOf(field.length > longestName ? "" : field)
      const { kind } = words
      if (kind !== undefined && !(kind === "prompt" && isThinking)) {
        note(kind === "length" && isThinking ? "budget" : kind, path + field, value)
      } else if (isTemplate && !isWord(value)) note("prompt", path + field, value)
      else if (isRecord(value) && depth < deepest && !words.isContent) {
        level.push({
          fields: value,
          path: `${path}${field}.`,
          depth: depth + 1,
          isTemplate: words.isTemplate,
          isThinking: words.isThinking
        })
      }
    }
  }
  return found
}
