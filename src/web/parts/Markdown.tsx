/**
 * Replies of models as people read them: the part of Markdown that models write. Everything becomes text nodes: HTML in a
 * reply is shown, not interpreted, and addresses are not loaded.
 */
import type { ComponentChildren } from "preact"
import { useSelectable } from "./still.ts"

/** Code, bold and emphasis within a line. */
const inline = (text: string): ComponentChildren =>
  text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\s][^*\n]*\*)/).map((part, index) => {
    if (index % 2 === 0) return part
    if (part.startsWith("`")) return <code key={index}>{part.slice(1, -1)}</code>
    return part.startsWith("**")
      ? <strong key={index}>{part.slice(2, -2)}</strong>
      : <em key={index}>{part.slice(1, -1)}</em>
  })

interface Block {
  readonly kind: "code" | "heading" | "bullets" | "numbers" | "text"
  readonly lines: ReadonlyArray<string>
}

const kindOf = (line: string): Exclude<Block["kind"], "code"> =>
  /^#{1,6} /.test(line)
    ? "heading"
    : /^\s*[-*] /.test(line)
    ? "bullets"
    : /^\s*\d+[.)] /.test(line)
    ? "numbers"
    : "text"

/** The blocks of a text, in one pass over its lines. A fence that is still open, as while a reply arrives, ends with the text. */
export const blocksOf = (text: string): ReadonlyArray<Block> => {
  const blocks: Array<{ kind: Block["kind"]; lines: Array<string> }> = []
  let fenced = false
  let joins = false
  for (const line of text.split("\n")) {
    if (/^\s*```/.test(line)) {
      fenced = !fenced
      joins = false
      if (fenced) blocks.push({ kind: "code", lines: [] })
    } else if (fenced) {
      blocks.at(-1)!.lines.push(line)
    } else if (line.trim() === "") {
      joins = false
    } else {
      const kind = kindOf(line)
      const last = blocks.at(-1)
      if (joins && last?.kind === kind && kind !== "heading") last.lines.push(line)
      else blocks.push({ kind, lines: [line] })
      joins = true
    }
  }
  return blocks
}

const Shown = ({ kind, lines }: Block) => {
  const items = () =>
    lines.map((line, index) => <li key={index}>{inline(line.replace(/^\s*(?:[-*]|\d+[.)]) /, ""))}</li>)
  switch (kind) {
    case "code":
      return <pre>{lines.join("\n")}</pre>
    case "heading":
      return (
        <p>
          <strong>{inline(lines[0]!.replace(/^#+ /, ""))}</strong>
        </p>
      )
    case "bullets":
      return <ul>{items()}</ul>
    case "numbers":
      return <ol>{items()}</ol>
    default:
      return <p>{inline(lines.join("\n"))}</p>
  }
}

export const Markdown = ({ text }: { readonly text: string }) => {
  const { ref, shown } = useSelectable<string, HTMLDivElement>(text)
  return (
    <div ref={ref} class="said markdown">
      {blocksOf(shown.trim()).map((block, index) => <Shown key={index} {...block} />)}
    </div>
  )
}
