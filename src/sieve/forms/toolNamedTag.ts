/**
 * A tag named like a declared tool: `<wx><city>Oslo</city></wx>`, `<wx city="Oslo"/>`. Names that HTML or SVG knows are never a
 * call. Attributes must end within the bound.
 */
import type { Form } from "../form.ts"
import { readNamedBody } from "./tagArguments.ts"

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
