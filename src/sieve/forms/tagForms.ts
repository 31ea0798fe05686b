/**
 * Calls in tags: wrappers that hold several calls, call tags by themselves, and tags named like a declared tool.
 */
import { OPEN_BRACE, OPEN_BRACKET } from "../../domain/stream/characters.ts"
import { isLess } from "../fold.ts"
import type { Context, Form } from "../form.ts"
import type { TagHead } from "../readers/markup.ts"
import { type Reading, skipBlanks } from "../reading.ts"
import { readNamedBody } from "./tagArguments.ts"
import { callTags, readCalls, readJsonCalls, readTagCall, wrapperTags } from "./tagCalls.ts"
import { readPiece, takeStrayCloser } from "./tags.ts"

/** `<tool_calls>…</tool_calls>`, `<function_calls>…</function_calls>` or Nemotron's `<TOOLCALL>…</TOOLCALL>`: call tags of any kind, or JSON. */
export const wrapperTag: Form = {
  name: "wrapper tag",
  opening: { at: "tag", names: [...wrapperTags] },
  markers: { tags: [...wrapperTags] },
  bound: 2048,
  *read(context, head) {
    if (head === undefined || head.isSelfClosing) return
    const { source } = context
    const closers = new Set([head.name])
    const c = yield* skipBlanks(source)
    if (c === OPEN_BRACKET || c === OPEN_BRACE) {
      yield* readJsonCalls(context, c, closers)
    } else if (isLess(c)) {
      const piece = yield* readPiece(source)
      if (typeof piece !== "object" || piece.isClosing || !piece.isComplete || !callTags.has(piece.name)) return
      yield* readCalls(context, piece, closers)
    }
  }
}

const strayClosers = new Set([...wrapperTags, "tool_call"])

/** Reads a call tag outside a wrapper. Some models write the wrapper's closing tag alone: it belongs to the last call. */
function* readAlone(context: Context, head: TagHead | undefined): Reading<void> {
  if (head === undefined || (yield* readTagCall(context, head)) !== "call") return
  yield* takeStrayCloser(context, head.name === "tool_call" ? wrapperTags : strayClosers)
}

const callTag = (name: string, bound: number, names: ReadonlyArray<string>, ...inner: ReadonlyArray<string>): Form => ({
  name,
  opening: { at: "tag", names },
  markers: { tags: [...names, ...inner] },
  bound,
  read: readAlone
})

/** `<tool_call>…</tool_call>`, which holds JSON, child tags, a function tag, or GLM's key and value tags. */
export const toolCallTag: Form = callTag("tool_call tag", 2048, ["tool_call"], "arg_key", "arg_value")

/** `<function=wx>…</function>`, `<function_call>{…}</function_call>`, `<function_call name="wx">{…}</function_call>`. */
export const functionTag: Form = callTag("function tag", 1024, ["function", "function_call"], "parameter")

/** `<invoke name="wx"><parameter name="city">Oslo</parameter></invoke>`, with or without marker noise. */
export const invokeTag: Form = callTag("invoke tag", 1024, ["invoke"], "parameter")

/** `<tool_use><name>wx</name><input>{…}</input></tool_use>`. */
export const toolUseTag: Form = callTag("tool_use tag", 1024, ["tool_use"])

/** Elements of HTML and SVG, which are never a call. */
const markup = new Set(
  (
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo big blink blockquote body br button canvas " +
    "caption center cite code col colgroup content data datalist dd del details dfn dialog dir div dl dt element em embed " +
    "fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img " +
    "input ins isindex kbd keygen label legend li link listing main map mark marquee math menu menuitem meta meter nav nobr noembed " +
    "noframes noscript object ol optgroup option output p param picture plaintext portal pre progress q rb rp rt rtc ruby s samp " +
    "script search section select selectedcontent shadow slot small source spacer span strike strong style sub summary sup table " +
    "tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr xmp " +
    "svg animate animatemotion animatetransform circle clippath cursor defs desc discard ellipse feblend fecolormatrix " +
    "fecomponenttransfer fecomposite feconvolvematrix fediffuselighting fedisplacementmap fedistantlight fedropshadow feflood " +
    "fefunca fefuncb fefuncg fefuncr fegaussianblur feimage femerge femergenode femorphology feoffset fepointlight " +
    "fespecularlighting fespotlight fetile feturbulence filter foreignobject g glyph glyphref hatch hatchpath hkern line " +
    "lineargradient marker mask mesh meshgradient meshpatch meshrow metadata missing-glyph mpath path pattern polygon polyline " +
    "radialgradient rect set stop switch symbol text textpath tref tspan unknown use view vkern"
  ).split(" ")
)

/** A tag named like a declared tool: `<wx><city>Oslo</city></wx>`, `<wx city="Oslo"/>`. Its attributes end within the bound. */
export const toolNamedTag: Form = {
  name: "tool-named tag",
  opening: {
    at: "tag",
    claims: (_, written, tools) => tools.has(written) && !markup.has(written.toLowerCase()),
    isPlain: true
  },
  markers: {},
  bound: 1024,
  *read(context, head) {
    if (head === undefined || head.isMarked || head.value !== undefined) return
    yield* readNamedBody(context, head.written, head, new Set([head.name]), true)
  }
}
