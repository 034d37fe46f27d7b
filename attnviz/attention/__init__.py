"""The mathematics of attention in torch alone: masks, dropout, both multi-head forms and the named stages."""
