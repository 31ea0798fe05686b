/** Names that are longer than their room. */
/** The most characters at the end of a name that stay in sight. */
const endLength = 12

/** The fewest characters of a beginning that is cut by itself. */
const leastBeginning = 6

/** Where the end of a name begins that stays in sight: at a word within its last characters, else at those; 0 for a name that ends alone. */
const endOf = (text: string): number => {
  const last = Math.max(0, text.length - endLength)
  const word = text.slice(last).search(/[^\p{L}\p{N}]/u)
  const start = word === -1 || last + word > text.length - 3 ? last : last + word
  // A space between both belongs to the beginning, where it can be cut.
  return start < leastBeginning ? 0 : text[start] === " " ? start + 1 : start
}

/**
 * A name that is cut in its middle where it has no room, so that its beginning and an ending such as "(production)" stay. What it stands in
 * has the name for screen readers: they read two parts.
 */
export const Middle = ({ text }: { readonly text: string }) => {
  const start = endOf(text)
  return (
    <span class="middle">
      {start > 0 && <span class="beginning">{text.slice(0, start)}</span>}
      <span>{text.slice(start)}</span>
    </span>
  )
}

/** A name that breaks after `@` and `/` and before dots, not inside its words. */
export const Breaking = ({ text }: { readonly text: string }) => (
  <span class="breaks">
    {text.split(/(?<=[@/])|(?=\.)/).map((part, index) => (
      <>
        {index > 0 && <wbr />}
        {part}
      </>
    ))}
  </span>
)
