// Reads a list of `ui_schema` values, gives each to the unmodified A2UI library, presses every button, and says
// what it made of them.
import {
  BASIC_COMPONENTS,
  BASIC_FUNCTIONS,
  Catalog,
  MessageProcessor,
  NodeResolver,
  getValue,
  isComponentNode,
  peekValue,
} from '@a2ui/web_core/v0_9';

function nodes(node, found = []) {
  found.push(node);
  for (const value of Object.values(peekValue(node.props))) {
    for (const child of [value].flat()) {
      if (isComponentNode(child)) nodes(child, found);
    }
  }
  return found;
}

async function show({operations}) {
  const {surfaceId, catalogId} = operations[0].createSurface;
  const catalog = new Catalog(catalogId, BASIC_COMPONENTS, BASIC_FUNCTIONS);
  const actions = [];
  const errors = [];
  const processor = new MessageProcessor([catalog], action => actions.push(action));
  processor.onSurfaceCreated(surface => surface.onError.subscribe(error => errors.push(error)));
  processor.processMessages(operations);
  const surface = processor.model.getSurface(surfaceId);
  const resolver = new NodeResolver(surface, catalog);
  const all = nodes(getValue(resolver.rootNode));
  for (const node of all.filter(node => node.type === 'Button')) {
    await peekValue(node.props).action();
  }
  const unresolved = all.filter(node => node.state !== 'resolved').map(node => node.componentId);
  const texts = all
    .filter(node => node.type === 'Text')
    .map(node => peekValue(node.props).text)
    .map(text => (typeof text === 'object' ? text.value : text));
  return {unresolved, errors, texts, actions: actions.map(({name, context}) => ({name, context}))};
}

let input = '';
for await (const chunk of process.stdin) input += chunk;
const shown = [];
for (const ui of JSON.parse(input)) shown.push(await show(ui));
console.log(JSON.stringify(shown));
