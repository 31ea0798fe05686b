/**
 * Views of the playground beside the conversation: reasoning, raw frames, and the request as code.
 */
import { duration } from "../parts/format.ts"
import { Section } from "../parts/Heading.tsx"
import { useSelectable } from "../parts/still.ts"
import { LongTable, numbers } from "../parts/Table.tsx"
import { copyText } from "../state/actions.ts"
import { linkTo } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"
import { curlOf, sdkOf } from "./code.ts"
import type { Prompt } from "./conversation.ts"
import type { Round } from "./state.ts"

export const RawFrames = ({ rounds }: { readonly rounds: ReadonlyArray<Round> }) => {
  const t = useTexts().playground
  const rows = rounds.flatMap(({ frames, number }) => frames.map((frame) => ({ ...frame, number })))
  const { requestId, status } = rounds.at(-1) ?? {}
  const manyRounds = rounds.length > 1
  return (
    <Section
      name={t.frames}
      actions={status !== undefined && (
        <p class="hint">
          {t.statusIs(status)}
          {requestId !== undefined && (
            <>
              {" · "}
              <a href={linkTo("requests", requestId)}>{t.inspect}</a>
            </>
          )}
        </p>
      )}
    >
      <LongTable
        follow
        name={t.frames}
        columns={[...numbers(...manyRounds ? [t.round] : [], t.time), t.frame]}
        rows={rows}
        empty={t.noFrames}
      >
        {({ at, data, number }) => (
          <>
            {manyRounds && <td class="number">{number}</td>}
            <td class="number">{duration(at)}</td>
            <td>
              <pre>{data.trimEnd()}</pre>
            </td>
          </>
        )}
      </LongTable>
    </Section>
  )
}

export const Reasoning = ({ text }: { readonly text: string }) => {
  const { ref, shown } = useSelectable<string, HTMLPreElement>(text)
  return (
    <Section name={useTexts().playground.reasoning}>
      <pre class="card body" ref={ref}>{shown}</pre>
    </Section>
  )
}

const CodeBlock = ({ code, name }: { readonly name: string; readonly code: string }) => {
  const t = useTexts().common
  return (
    <Section
      name={name}
      actions={
        <button type="button" onClick={() => void copyText(code, t.copied(name))}>{t.actionOn(t.copy, name)}</button>
      }
    >
      <div class="card body" tabIndex={0} role="group" aria-label={name}>
        <pre>{code}</pre>
      </div>
    </Section>
  )
}

export const Code = ({ prompt }: { readonly prompt: Prompt }) => {
  const t = useTexts().playground
  return (
    <div class="halves">
      <CodeBlock name={t.curl} code={curlOf(prompt)} />
      <CodeBlock name={t.sdk} code={sdkOf(prompt)} />
    </div>
  )
}
