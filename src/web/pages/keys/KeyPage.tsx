/**
 * The page of a key: what can be done with it, its limits, what it did in the last 24 hours, what is known of it, and how to use it.
 */
import { useMemo, useState } from "preact/hooks"
import { useFields } from "../../forms/Entry.tsx"
import { Card } from "../../parts/Card.tsx"
import { ChangeButton } from "../../parts/configuration.tsx"
import { Facts } from "../../parts/Facts.tsx"
import { dateTime, number } from "../../parts/format.ts"
import { Heading, Section } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowMenu } from "../../parts/Menu.tsx"
import { Ago } from "../../parts/Time.tsx"
import { copyText } from "../../state/actions.ts"
import { useReread } from "../../state/live.ts"
import { readOf } from "../../state/reads.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { useAcceptedKeys } from "../configuration.tsx"
import { Day, LastFailures, Touched } from "../nouns/Day.tsx"
import { Gone, Last } from "../nouns/Gone.tsx"
import { Access } from "./Access.tsx"
import { EditKey, RotateKey } from "./KeyForm.tsx"
import { DeleteKey, KeyState, requestsOf, setDisabled, Used } from "./KeyParts.tsx"
import { type KeyItem, keyOfId } from "./keys.ts"

const noKeys: ReadonlyArray<string> = []

type Dialog = "edit" | "rotate" | "delete"

/** Says why the key cannot be copied. */
const noCopyId = "no-copy"

const About = ({ item }: { readonly item: KeyItem }) => {
  const t = useTexts().keys
  const { created_at, id, label, models, note, preview, usage } = item
  return (
    <Facts
      facts={[
        [t.state, <KeyState key="state" item={item} />],
        [t.key, <code key="key" title={t.idOf(id)}>{preview}</code>],
        [t.fields("label") ?? "", label ?? undefined],
        [t.note, note ?? undefined],
        [t.modelsOf, models === null ? t.everyModel : models.join(", ")],
        [
          t.inFlight,
          <a key="running" href={requestsOf(id, { outcome: "open" })}>
            {usage.max_inflight === null
              ? number(usage.in_flight)
              : t.ofMost(number(usage.in_flight), number(usage.max_inflight))}
          </a>
        ],
        [t.lastUsed, usage.last_used_at === null ? "–" : <Ago key="used" at={Date.parse(usage.last_used_at)} />],
        [t.created, created_at === null ? undefined : dateTime(Date.parse(created_at))]
      ]}
    />
  )
}

const Shown = ({ isUnread, item, onOpen, value }: {
  readonly item: KeyItem
  /** Whether the page may still learn the key. */
  readonly isUnread: boolean
  /** The key itself, if the page knows it. */
  readonly value: string | undefined
  readonly onOpen: (dialog: Dialog) => void
}) => {
  const { keys: t, nouns } = useTexts()
  const { id } = item
  const name = item.name ?? item.preview
  return (
    <>
      <Heading name={name}>
        <button
          type="button"
          aria-disabled={value === undefined}
          title={value === undefined && !isUnread ? t.noCopy : undefined}
          aria-describedby={noCopyId}
          onClick={value === undefined ? undefined : () => void copyText(value, t.copied(name))}
        >
          {t.copy}
        </button>
        <ChangeButton onClick={() => onOpen("edit")}>{t.edit}</ChangeButton>
        <RowMenu
          of={name}
          items={[
            { id: "rotate", text: t.rotate, onClick: () => onOpen("rotate") },
            {
              id: "toggle",
              text: item.disabled ? t.enable : t.disable,
              onClick: () => setDisabled(item, !item.disabled, t)
            },
            { id: "delete", text: t.delete, danger: true, apart: true, onClick: () => onOpen("delete") }
          ]}
        />
      </Heading>
      {value === undefined && !isUnread && <p class="hint" id={noCopyId}>{t.noCopy}</p>}
      <Section name={t.limits} class="card meters">
        <Used item={item} />
      </Section>
      <Day of={{ key: id }} requests={{ key: `"${id}"` }} />
      <Card>
        <About item={item} />
      </Card>
      <div class="halves">
        <Touched
          of={{ key: id }}
          by="model"
          name={t.modelsOf}
          linkOf={({ value }) => linkTo("models", value)}
        />
        <Touched
          of={{ key: id }}
          by="upstream"
          name={t.upstream}
          linkOf={({ value: upstream }) => linkTo("upstreams", upstream)}
        />
      </div>
      <LastFailures requests={{ key: `"${id}"` }} />
      {value !== undefined && (
        <details class="card">
          <summary>{nouns.access}</summary>
          <Access keyText={value} model={item.models?.[0]} isUsed={item.usage.last_used_at !== null} />
        </details>
      )}
    </>
  )
}

export const KeyPage = ({ id }: { readonly id: string }) => {
  const [open, setOpen] = useState<Dialog>()
  const keys = useAcceptedKeys()
  const value = keyOfId(keys ?? noKeys, id)
  // So that a dialog opens immediately.
  useFields("keys")
  const list = useMemo(
    () => readOf("admin-keys", "list", { query: { page: 1, page_size: 50, q: id }, reactivityKeys: ["keys"] }),
    [id]
  )
  useReread(list)
  const close = () => setOpen(undefined)
  return (
    <Loaded atom={list} rows={8}>
      {({ items }) => (
        <Last item={items.find((each) => each.id === id)} page="keys">
          {(item, isGone) => (
            <>
              {isGone
                ? <Gone page="keys" />
                : <Shown item={item} value={value} isUnread={keys === undefined} onOpen={setOpen} />}
              {open === "edit" && <EditKey item={item} onClose={close} />}
              {open === "rotate" && <RotateKey item={item} onClose={close} />}
              {open === "delete" && <DeleteKey item={item} onClose={close} />}
            </>
          )}
        </Last>
      )}
    </Loaded>
  )
}
