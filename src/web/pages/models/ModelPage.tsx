/**
 * The page of a model: where it is served, what it costs, what it did in the last 24 hours, and for whom.
 */
import { useMemo, useState } from "preact/hooks"
import { fieldsAtom } from "../../forms/Entry.tsx"
import { Badge } from "../../parts/Badge.tsx"
import { Card } from "../../parts/Card.tsx"
import { GoneContext } from "../../parts/Dialog.tsx"
import { Facts } from "../../parts/Facts.tsx"
import { PressButton } from "../../parts/Form.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { readOf } from "../../state/reads.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { Day, LastFailures, Touched } from "../nouns/Day.tsx"
import { Gone } from "../nouns/Gone.tsx"
import { knownFacts } from "./KnownFacts.tsx"
import { type Editing, EditPrice, type Model, PriceLines, usePriceActions } from "./Price.tsx"
import { type PricedTarget, type Prices, pricesAtom } from "./prices.ts"

/** The most targets and prices that are named. */
const mostShown = 50
/** The most targets whose prices have buttons of their own; the list of models has the others. */
const mostButtons = 3

const Target = ({ name }: { readonly name: string }) => (
  <a class="of-line" href={linkTo("upstreams", name.slice(0, name.indexOf("/")))}>
    <code>{name}</code>
  </a>
)

const Shown = ({ currency, model, onEdit, prices, targets }: {
  readonly model: Model
  readonly currency: string | null
  readonly prices: Prices
  readonly targets: ReadonlyArray<PricedTarget>
  readonly onEdit: (editing: Editing) => void
}) => {
  const { common, models: t } = useTexts()
  const { facts, hidden, id, kind } = model
  const priced = targets.filter(({ name }) => name === id)
  const actions = usePriceActions(priced, onEdit)
  const requests = { model: `"${id}"` }
  return (
    <>
      <Heading name={id}>
        {actions.slice(0, mostButtons).map(({ disabled, onClick, text }) => (
          <PressButton key={text} disabled={disabled} onClick={onClick}>{text}</PressButton>
        ))}
      </Heading>
      <Card>
        <Facts
          facts={[
            [
              t.kind,
              <>
                {t.kinds[kind]} {hidden && <Badge sign="–" tone="muted" text={t.known.hidden} />}
              </>
            ],
            [t.known.displayName, facts.display_name?.value],
            [
              t.target,
              <>
                {model.targets.slice(0, mostShown).map((target) => <Target key={target} name={target} />)}
                {model.targets.length > mostShown && common.andMore(model.targets.length - mostShown)}
              </>
            ],
            [
              currency === null ? t.price : t.priceIn(currency),
              <PriceLines key="prices" model={model} entries={prices} priced={priced} most={mostShown} />
            ],
            ...knownFacts(model, t.known)
          ]}
        />
      </Card>
      <Day of={{ model: id }} requests={requests} />
      <div class="halves">
        <Touched of={{ model: id }} by="key" name={t.key} linkOf={({ value }) => linkTo("keys", value)} />
        <Touched
          of={{ model: id }}
          by="upstream"
          name={t.target}
          linkOf={({ value }) => linkTo("upstreams", value)}
        />
      </div>
      <LastFailures requests={requests} />
    </>
  )
}

export const ModelPage = ({ id }: { readonly id: string }) => {
  const [editing, setEditing] = useState<Editing>()
  const list = useMemo(
    () =>
      readOf("admin-models", "list", {
        query: { q: id, page_size: 1_000 },
        reactivityKeys: ["config", "upstreams", "routes"]
      }),
    [id]
  )
  return (
    <Loaded atom={list} rows={8}>
      {({ currency, models }) => {
        const model = models.find((each) => each.id === id)
        // An alias counts as what it stands for.
        if (model !== undefined && model.stands_for !== null) return <ModelPage key={id} id={model.stands_for} />
        return (
          <Loaded atom={fieldsAtom}>
            {({ entries: { prices: units } }) => (
              <Loaded atom={pricesAtom}>
                {({ prices, targets }) => (
                  // A price that is edited stays when the model is gone, and says so.
                  <GoneContext.Provider value={model === undefined}>
                    {model === undefined
                      ? <Gone page="models" />
                      : (
                        <Shown
                          model={model}
                          currency={currency}
                          prices={prices}
                          targets={targets}
                          onEdit={setEditing}
                        />
                      )}
                    {editing !== undefined && (
                      <EditPrice
                        units={units}
                        editing={editing}
                        prices={prices}
                        onClose={() => setEditing(undefined)}
                      />
                    )}
                  </GoneContext.Provider>
                )}
              </Loaded>
            )}
          </Loaded>
        )
      }}
    </Loaded>
  )
}
