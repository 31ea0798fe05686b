/**
 * How to use a key: the key and the address with Copy, snippets for clients, and whether its first request has arrived.
 */
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import { useEffect, useId, useState } from "preact/hooks"
import { isPlainWord } from "../../../domain/printed.ts"
import { Chip } from "../../parts/Card.tsx"
import { CopyButton } from "../../parts/Copy.tsx"
import { Section } from "../../parts/Heading.tsx"
import { Sign } from "../../parts/Icon.tsx"
import { base, type RequestItem } from "../../state/client.ts"
import { onRequests } from "../../state/live.ts"
import { useAtom } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { upstreamsAtom } from "../../state/upstreams.ts"
import { keyIdOf } from "./keys.ts"
import { snippetFiles, type SnippetName, snippetNames, snippetOf } from "./snippets.ts"

/** The model of snippets while the gateway's models are loaded, and for an upstream that lists no model. */
const fallbackModel = "upstream-chat"

/** A model that the gateway serves, by a name that every shell takes as it is. */
const useModel = (): string => {
  const reply = Option.getOrUndefined(AsyncResult.value(useAtom(upstreamsAtom)))
  return reply?.upstreams.flatMap(({ enabled, models }) => enabled ? models : []).find(isPlainWord) ?? fallbackModel
}

const Snippets = ({ keyText, model }: { readonly keyText: string; readonly model: string }) => {
  const t = useTexts().keys
  const id = useId()
  const [name, setName] = useState<SnippetName>("curl")
  const text = snippetOf(name, { base, key: keyText, model })
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const at = (snippetNames.indexOf(name) + step + snippetNames.length) % snippetNames.length
    setName(snippetNames[at]!)
    document.getElementById(`${id}-${at}`)?.focus()
  }
  return (
    <div class="snippets">
      <div class="actions" role="tablist" aria-label={t.clients} onKeyDown={move}>
        {snippetNames.map((each, index) => (
          <Chip
            key={each}
            id={`${id}-${index}`}
            role="tab"
            aria-selected={each === name}
            aria-controls={`${id}-panel`}
            tabIndex={each === name ? 0 : -1}
            onClick={() => setName(each)}
          >
            {each}
          </Chip>
        ))}
      </div>
      <div
        id={`${id}-panel`}
        class="snippet"
        role="tabpanel"
        aria-labelledby={`${id}-${snippetNames.indexOf(name)}`}
        tabIndex={0}
      >
        <pre>{text}</pre>
        <CopyButton name={snippetFiles[name] ?? name} text={text} />
      </div>
      {snippetFiles[name] !== undefined && <p class="hint">{t.saveAs(snippetFiles[name])}</p>}
    </div>
  )
}

/** The first request of a key from now on; `undefined` until it arrives. */
const useFirstRequest = (id: string): RequestItem | undefined => {
  const [first, setFirst] = useState<RequestItem>()
  useEffect(() => {
    let found: string | undefined
    return onRequests((items) => {
      // The latest change is first, so the oldest request of an event is its last one.
      const item = items.findLast((each) => found === undefined ? each.key === id : each.id === found)
      if (item === undefined) return
      found = item.id
      setFirst(item)
    })
  }, [id])
  return first
}

/** Waits for the first request of a key, and leads to it. */
const FirstRequest = ({ id }: { readonly id: string }) => {
  const t = useTexts().keys
  const first = useFirstRequest(id)
  const link = first !== undefined && <a href={linkTo("requests", first.id)}>{first.request_id}</a>
  return (
    <p class={`arrival ${first === undefined ? "" : first.outcome}`} role="status" aria-label={t.firstRequest}>
      {first === undefined
        ? (
          <>
            <span class="dot" aria-hidden="true" /> {t.waiting}
          </>
        )
        : first.outcome === "open"
        ? <>{t.arrived} {link}</>
        : first.outcome === "ok"
        ? (
          <>
            <Sign of="✓" /> {t.works} {link}
          </>
        )
        : (
          <>
            <Sign of="✕" /> {t.failed(first.error ?? "")} {link}
          </>
        )}
    </p>
  )
}

/**
 * A key and how to use it. `model` is one that the key may use; by default one that the gateway serves. Unless the key `isUsed`, it waits
 * for the first request.
 */
export const Access = ({ isUsed = false, keyText, model }: {
  readonly keyText: string
  readonly model?: string | undefined
  readonly isUsed?: boolean
}) => {
  const t = useTexts().keys
  const served = useModel()
  return (
    <div class="access">
      <dl class="facts">
        <dt>{t.key}</dt>
        <dd>
          <code class="secret">{keyText}</code> <CopyButton name={t.theKey} text={keyText} />
        </dd>
        <dt>{t.address}</dt>
        <dd>
          <code>{base}</code> <CopyButton name={t.address} text={base} />
        </dd>
      </dl>
      <Snippets keyText={keyText} model={model ?? served} />
      {!isUsed && <FirstRequest id={keyIdOf(keyText)} />}
    </div>
  )
}

/** The first content of a fresh gateway: the key of its start `of`, and how to use it. */
export const FirstRun = ({ of: keyText = "" }: { readonly of: string | undefined }) => {
  const t = useTexts().keys
  return (
    <Section name={t.firstRun} class="card">
      <p class="lead">{t.firstRunLead}</p>
      <Access keyText={keyText} />
    </Section>
  )
}
