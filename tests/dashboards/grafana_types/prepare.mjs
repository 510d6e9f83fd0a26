// A copy of Grafana's types in which a text may stand for a member of an enum, as it does in JSON.
import { cpSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
const types = join(folder, 'types');
rmSync(types, { recursive: true, force: true });
cpSync(join(folder, 'node_modules/@grafana/schema/dist/types'), types, {
  recursive: true,
  filter: (path) => !path.includes(join('types', 'schema')),
});

const asUnion = (_whole, name, body) => {
  const members = [...body.matchAll(/(\w+) = ("[^"]*"|-?[0-9.]+)/g)];
  const union = members.map((member) => member[2]).join(' | ');
  const names = members.map((member) => `export type ${member[1]} = ${member[2]};`).join(' ');
  return `export type ${name} = ${union};\nexport declare namespace ${name} { ${names} }`;
};

const walk = (path) => {
  for (const entry of readdirSync(path)) {
    const inner = join(path, entry);
    if (statSync(inner).isDirectory()) {
      walk(inner);
    } else if (inner.endsWith('.d.ts')) {
      const text = readFileSync(inner, 'utf8');
      writeFileSync(inner, text.replace(/export declare enum (\w+) \{([^}]*)\}/g, asUnion));
    }
  }
};
walk(types);
