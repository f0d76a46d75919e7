"""Small modules, one per thing that exporters lose or keep; one file per kind of thing. Imports nothing here: unittest loads
every package on its way, also where there is no torch."""
