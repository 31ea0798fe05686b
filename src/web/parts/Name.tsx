/** Names that are longer than their room. */
/** Characters at the end of a name that stay in sight. */
const endLength = 12

/**
 * A name that is cut in its middle where it has no room, so that an ending such as "(production)" stays. What it stands in has the name for
 * screen readers: they read two parts.
 */
export const Middle = ({ text }: { readonly text: string }) =>
  text.length <= endLength
    ? <>{text}</>
    : (
      <span class="middle">
        <span>{text.slice(0, -endLength)}</span>
        <span>{text.slice(-endLength)}</span>
      </span>
    )

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
